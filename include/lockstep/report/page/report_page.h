// The page of `trainer report`: one HTML file that shows what runs did. It holds their numbers as JSON, of
// which its script makes charts, tables and texts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/run_description.h"

namespace lockstep {

inline constexpr std::size_t kMaxPageBytes = 1'000'000;
inline constexpr std::size_t kMaxChartPoints = 2000;

/// All that the page shows, as JSON in one line without "<"; the guide on output has its fields. The runs in
/// the order given. Fewer points are in it where runs are long or many, so that the page has at most
/// kMaxPageBytes. Errors: ConfigError if the runs are too many for one page.
std::string report_json(const std::vector<RunDescription>& runs);

/// Errors: as report_json() has them.
std::string report_page(const std::vector<RunDescription>& runs);

}  // namespace lockstep
