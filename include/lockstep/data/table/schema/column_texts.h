// The texts of columns of a table that say where a record belongs: to which time, series or part. They are
// kept by the first pass over the table.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/held_out.h"
#include "lockstep/data/options.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The values of a column.
struct ColumnValues {
  std::vector<std::string> texts = {};    ///< of each record
  TableColumn column = {};                ///< as data.columns declares it
  std::vector<std::string> missing = {};  ///< texts that stand for a missing value
  std::vector<Index> skipped = {};        ///< positions of the records that were left out
  char separator = ',';                   ///< of the fields

  /// The number of a record in the files, those that were left out counted with the others.
  Index position(Index id) const { return position_among(skipped, id); }
};

class ColumnTexts {
 public:
  /// The columns that are wanted; a table need not have them.
  explicit ColumnTexts(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}

  bool empty() const { return wanted_.empty(); }
  /// The positions of those columns that the table has.
  std::vector<Index> find(const TableText& table) const;
  /// Takes what a scan found there. `name`: of the table, for messages.
  void take(const TableText& table, const TableOptions& options, std::string name, Scan& scan);
  /// A later scan left these records out.
  void leave_out(const std::vector<Index>& positions) { skipped_ = positions; }
  /// Nobody asks for a text any more.
  void forget() { texts_.clear(); }

  /// The values of a column, none of which is empty. `setting`: who wants it, for messages; it asks once, but
  /// again where records were left out since. Errors: ConfigError if there is no such column, or it has no
  /// value in some record.
  ColumnValues values(const std::string& column, const std::string& setting);

 private:
  std::vector<std::string> wanted_;  // each as often as it will be asked for
  bool skips_ = false;               // bad records are left out, once they are known
  std::string name_;
  std::vector<std::string> names_;  // of all columns of the table
  std::vector<std::string> missing_;
  char separator_ = ',';
  std::vector<TableColumn> found_;               // the columns that are kept
  std::vector<std::vector<std::string>> texts_;  // of each of these that of each record, left out or not
  std::vector<Index> skipped_;
};

/// The records of a table before anything is learnt from them.
struct TableRecords {
  std::string name;  ///< of the table
  Index rows = 0;
  const TableOptions& options;
  std::span<const TableColumn> columns;  ///< of known kinds
  ColumnTexts& texts;
};

/// *Collective.* Says which records nothing is learnt from. It may be called again, with fewer records.
/// Errors, the same on all ranks: ConfigError.
using DivideTable = std::function<HoldOut(const TableRecords&)>;

/// The other questions to a table that is opened.
struct TableQuestions {
  ColumnTexts& texts;
  DivideTable divide = {};  ///< empty: it is learnt from all records
};

}  // namespace lockstep
