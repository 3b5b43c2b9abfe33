// How another data set differs from the training data.
#pragma once

#include "lockstep/data/table/inspect/findings.h"
#include "record_sketch.h"

namespace lockstep {

/// Values that the training data does not have, columns that are distributed otherwise, and records that the
/// training data has, too. `sketch`: of the training data. Errors: DataError if the set cannot be read.
std::vector<Finding> compare_with(const TableInspection& inspection, const RecordSketch& sketch,
                                  const OtherSet& other, const TableOptions& options);

}  // namespace lockstep
