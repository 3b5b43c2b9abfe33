// The values of records by which they are divided: their class, or the text of a column of their table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/column_texts.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The one target of each record, and the names of classes.
struct FoldTargets {
  std::vector<Scalar> targets;
  std::vector<std::string> class_names = {};
};
/// *Collective.* Errors: ConfigError.
FoldTargets read_targets(const RecordSource& whole, const ValidationPart& part, PeerGroup& peers);
/// The targets of a table, from the texts of its label. Errors: ConfigError, also for a text that is no
/// label.
FoldTargets targets_of(const TableRecords& table, const ValidationPart& part);

/// The records of each class, in the order of a keyed permutation of all of them.
using RecordsByClass = std::map<Scalar, std::vector<Index>>;
/// Errors: ConfigError if there are too many values for classes.
RecordsByClass records_by_class(const std::vector<Scalar>& targets, std::uint64_t seed,
                                const ValidationPart& part);

/// The numbers that put the records in order of time.
struct FoldTimes {
  std::vector<double> numbers;        ///< of each record
  bool short_years = false;           ///< years of two digits are those of the usual hundred
  std::optional<DateForm> form = {};  ///< that of dates; nothing: they are numbers
  std::string problem = {};  ///< the first value that is missing, or not of the form of most; "": none
};
/// The values as numbers of one notation, or dates of one form. Errors: ConfigError naming the first that is
/// not, or is missing, or if they may be of two forms.
FoldTimes times_of(const ColumnValues& values, const std::string& setting);
/// These numbers where all values are of one form; else the places of the texts in the order of their bytes.
std::vector<double> places_of(const ColumnValues& values, const std::string& setting);

}  // namespace lockstep
