// Counts of samples by what is so and what is predicted: a confusion matrix, or one of yes and no for each
// output.
#pragma once

#include <span>

#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

/// Cells for so many outputs; 0 where nothing is counted. See EvalMetrics::confusion and answers.
Index counted_cells(TargetKind targets, Index outputs);

/// Adds a block of rows to the cells, if there are any.
void count_cells(TargetKind targets, const MetricRows& rows, std::span<Index> cells);

}  // namespace lockstep
