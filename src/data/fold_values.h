// The values of records by which they are divided: their class, or the text of a column of their table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/values/notation.h"

namespace lockstep {

/// Calls `use` with the targets of each record of this rank's share of the source, in order. Errors:
/// DataError.
void for_each_target(const RecordSource& source, const TargetRule& rule, const PeerGroup& peers,
                     const std::function<void(std::span<const Scalar>)>& use);

/// *Collective.* The one target of each record. Errors: ConfigError.
std::vector<Scalar> read_targets(const RecordSource& whole, const ValidationPart& part, PeerGroup& peers);

/// The records of each class, in the order of a keyed permutation of all of them.
using RecordsByClass = std::map<Scalar, std::vector<Index>>;
/// Errors: ConfigError if there are too many values for classes.
RecordsByClass records_by_class(const std::vector<Scalar>& targets, std::uint64_t seed,
                                const ValidationPart& part);

struct FoldValues {
  std::vector<std::string> texts;         ///< of each record
  std::optional<DateForm> declared = {};  ///< the form of its dates, if data.columns says it
};

/// *Collective.* The text of the part's column in each record of the table, none of which is empty. Errors,
/// the same on all ranks: ConfigError if there is no such column, or it has no value in some record;
/// DataError.
FoldValues read_column(const ValidationPart& part, const DataOptions& data, const RecordSource& whole,
                       PeerGroup& peers);

/// The order of numbers if all are numbers, that of dates if all are dates of one form, else that of texts.
class ValueOrder {
 public:
  /// Errors: ConfigError if the values are dates whose day and month cannot be told apart.
  ValueOrder(const FoldValues& values, const ValidationPart& part);

  bool operator()(const std::string& a, const std::string& b) const;

 private:
  enum class Kind { kNumber, kDate, kText };

  double number_of(const std::string& text) const;

  Kind kind_ = Kind::kText;
  DateForm form_ = DateForm::kYmd;
};

}  // namespace lockstep
