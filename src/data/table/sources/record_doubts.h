// Doubts about records that a model reads and did not learn from: they are in another unit, or written or
// filled in otherwise.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "far_numbers.h"
#include "lockstep/base/types.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/text_files.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

class RecordDoubts {
 public:
  explicit RecordDoubts(const TableSchema& schema);

  /// A record of that file: a cell for each column of the schema. `unseen`: how many values of each column so
  /// far training had not.
  void add(std::span<const Cell> cells, std::size_t file, std::span<const Index> unseen);

  /// A value of this rank that training had not, "" or ", such as 'x'": with one that is the same number.
  std::string unseen_example(std::size_t column) const;

  /// *Collective.* A line for each doubt. `name`: of the data set. Errors: DataError, the same on all ranks,
  /// if a column that is known ahead is empty in all records to be forecast.
  std::vector<std::string> describe(const TextFiles& text, const std::string& name, PeerGroup& peers) const;

 private:
  enum Count {
    kMissing,
    kMissingAhead,  ///< in records to be forecast
    kThousandths,   ///< numbers such as 1.049
    kOthers,        ///< numbers that would not be written so if 1.049 meant 1049
    kPlain,         ///< numbers without the sign or unit that training's have
    kCounts
  };
  struct Column {
    bool may_have_thousands;  ///< training's numbers are whole, from 1,000 on
    bool has_affix;
    std::string unseen = {};
    double example = 0;  ///< of kThousandths
  };
  Index& count(std::size_t column, Count which) { return counts_[column * kCounts + which]; }
  void add_number(std::size_t column, double number);
  void describe_column(std::size_t column, std::span<const Index> counts, Index records,
                       std::vector<std::string>& lines) const;

  const TableSchema* schema_;
  FarNumbers far_;
  std::vector<std::size_t> labels_;
  Index trained_ = 0;  ///< records of the training data
  Index records_ = 0;
  Index coming_ = 0;  ///< records to be forecast: without any label
  std::vector<Column> columns_;
  std::vector<Index> counts_;  ///< kCounts of each column
};

}  // namespace lockstep
