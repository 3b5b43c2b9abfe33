// The kinds of the columns of a table, guessed from all their values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// *Collective.* Looks at the columns of unknown kind (`columns`: one for each column of the table), or at
/// all of them. Bad records are left out and counted. Errors as of scan_table.
Scan look_at_columns(const TableText& table, const std::vector<TableColumn>& columns, bool all,
                     const std::vector<std::string>& missing, PeerGroup& peers);

/// The guess how a column is best used.
struct ColumnGuess {
  ColumnKind kind = ColumnKind::kIgnored;
  Index hash = 0;           ///< buckets, if it has too many categories for one feature each
  std::string remark = {};  ///< suspicious facts about it, or ""
  bool doubtful = false;    ///< the remark is of a value that may be misread
  std::optional<NumberNotation> notation = {};   ///< how numbers are written, if they are not plain
  std::optional<DateReading> date = {};          ///< numbers are the days of dates
  std::vector<std::string> missing_values = {};  ///< texts among numbers that stand for a missing one
};
/// `separator`: of the fields; where it is a comma, a comma in a number more likely stands between thousands.
ColumnGuess guess_column(const ColumnSummary& summary, bool label, char separator);

/// Gives the column the kind that is guessed, and what belongs to it.
void take_guess(TableColumn& column, const ColumnGuess& guess);

/// Remarks on the kinds that were inferred.
struct Remarks {
  std::vector<std::string> notes;
  std::vector<std::string> doubts;  ///< values that may be misread
};

/// *Collective.* Gives each column of unknown kind the one that is guessed. Errors as of scan_table.
Remarks infer_kinds(const TableText& table, std::vector<TableColumn>& columns,
                    const std::vector<std::string>& missing, PeerGroup& peers);

}  // namespace lockstep
