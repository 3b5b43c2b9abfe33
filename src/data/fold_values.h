// The values of records by which they are divided: their class, or the text of a column of their table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// *Collective.* The one target of each record. Errors: ConfigError.
std::vector<Scalar> read_targets(const RecordSource& whole, const ValidationPart& part, PeerGroup& peers);

/// The records of each class, in the order of a keyed permutation of all of them.
using RecordsByClass = std::map<Scalar, std::vector<Index>>;
/// Errors: ConfigError if there are too many values for classes.
RecordsByClass records_by_class(const std::vector<Scalar>& targets, std::uint64_t seed,
                                const ValidationPart& part);

struct FoldValues {
  std::vector<std::string> texts = {};    ///< of each record
  TableColumn column = {};                ///< the column as data.columns declares it
  std::vector<std::string> missing = {};  ///< texts that stand for a missing value
  const RecordSource* source = nullptr;   ///< whose records they are; tells their positions in the file
  char separator = ',';                   ///< of the fields
};

/// *Collective.* The text of the part's column in each record of the table, none of which is empty. Errors,
/// the same on all ranks: ConfigError if there is no such column, or it has no value in some record;
/// DataError.
FoldValues read_column(const ValidationPart& part, const DataOptions& data, const RecordSource& whole,
                       PeerGroup& peers);

/// The numbers that put the records in order of time.
struct FoldTimes {
  std::vector<double> numbers;        ///< of each record
  bool short_years = false;           ///< years of two digits are those of the usual hundred
  std::optional<DateForm> form = {};  ///< that of dates; nothing: they are numbers
  std::string problem = {};  ///< the first value that is missing, or not of the form of most; "": none
};
/// The values as numbers of one notation, or dates of one form. Errors: ConfigError naming the first that is
/// not, or is missing, or if they may be of two forms.
FoldTimes times_of(const FoldValues& values, const ValidationPart& part);
/// These numbers where all values are of one form; else the places of the texts in the order of their bytes.
std::vector<double> places_of(const FoldValues& values, const ValidationPart& part);

}  // namespace lockstep
