// Shared by the reader of a trace and its views.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/trace/trace.h"

namespace lockstep {

/// The last arrivals at all sync points and exchanges. The steps of a rank are distinct.
LastArrivals find_last_arrivals(const std::vector<RankTrace>& ranks);

struct SlowStep {
  Index step = 0;
  double seconds = 0;
};

/// Each step once, with its longest time, the slowest first; of equally slow ones the earlier first.
std::vector<SlowStep> slowest_first(const std::vector<SlowStep>& times);

/// The schedule of the first group in a step of median length, a line for each stage; "" if the model is not
/// divided.
std::string draw_stages(const RunTrace& trace);

}  // namespace lockstep
