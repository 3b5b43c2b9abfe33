// Places of a date in the cycles of the calendar, computed inside a graph.
#pragma once

#include <string>
#include <utility>

#include "graph.h"
#include "lockstep/data/table/date.h"

namespace lockstep {

/// Adds the sine and the cosine, two floats [N, 1], of a part but kDay, as cycle_of() gives them. `days` is
/// double [N, 1], as parse_date() gives it; NaN gives NaN.
std::pair<std::string, std::string> add_cycle(OnnxGraph& graph, const std::string& days, DatePart part);

}  // namespace lockstep
