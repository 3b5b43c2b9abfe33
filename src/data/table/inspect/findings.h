// Suspicious facts about the records of a table, beyond the notation of its values.
#pragma once

#include "record_sketch.h"

namespace lockstep {

inline double percent(Index part, Index whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Everything but the findings of the inspection is known. Errors: DataError if a file cannot be read.
std::vector<Finding> find_suspicious(const TableInspection& inspection, const std::vector<OtherSet>& others);

/// Values that the training data does not have, columns that are distributed otherwise, and records that the
/// training data has, too. `sketch`: of the training data. Errors: DataError if the set cannot be read.
std::vector<Finding> compare_with(const TableInspection& inspection, const RecordSketch& sketch,
                                  const OtherSet& other);

}  // namespace lockstep
