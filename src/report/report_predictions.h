// The parts of a page about single predictions and columns: ROC and precision-recall curves, reliability,
// predictions against targets, the records that are predicted worst, and importance.
#pragma once

#include <string>
#include <vector>

#include "report_charts.h"

namespace lockstep {

void add_prediction_charts(const std::vector<RunDescription>& runs, const ChartLimits& limits,
                           std::vector<ChartPart>& parts);
void add_importance_charts(const std::vector<RunDescription>& runs, std::vector<ChartPart>& parts);

/// A table or, for images, a gallery; empty without such records.
std::string worst_records_of(const RunDescription& run);

}  // namespace lockstep
