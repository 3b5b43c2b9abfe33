// Places of a date in the cycles of the calendar, computed inside a graph.
#pragma once

#include <string>
#include <utility>

#include "graph.h"
#include "lockstep/data/table/values/date.h"

namespace lockstep {

/// Adds a float for each day of a leap year, [N, kDaysOfYear]: 1 for that of `days` as day_of_year() gives
/// it, else 0; NaN gives zeros.
std::string add_day_of_year(OnnxGraph& graph, const std::string& days);

/// Adds the sine and the cosine, two floats [N, 1], of kYear or a part after it, as cycle_of() gives them.
/// `days` is double [N, 1], as parse_date() gives it; NaN gives NaN.
std::pair<std::string, std::string> add_cycle(OnnxGraph& graph, const std::string& days, DatePart part);

}  // namespace lockstep
