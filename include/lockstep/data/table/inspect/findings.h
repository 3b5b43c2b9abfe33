// Suspicious facts about the records of a table, beyond the notation of its values: columns that give the
// label away, that say nothing or that only name a record, records that occur twice, rare classes, and other
// data sets that are unlike the training data.
//
// Ranges, categories and counts are those of all records. What needs records side by side is found in a
// sample: at most 50,000 records, fewer of a wide table, chosen by a hash of their number; and records that
// occur twice are looked for among a million different ones at most, chosen by a hash of their content. So
// memory is bounded, and the result follows from the files alone.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/table/inspect/inspect.h"

namespace lockstep {

/// Another data set than the training data.
struct OtherSet {
  std::string name;                ///< its name in messages
  std::vector<std::string> paths;  ///< paths of its files
};

/// Errors: DataError if a file cannot be read.
std::vector<Finding> find_suspicious(const TableInspection& inspection, const TableOptions& options,
                                     const std::vector<OtherSet>& others);

}  // namespace lockstep
