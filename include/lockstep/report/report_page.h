// The page of `trainer report`: one HTML file that shows what runs did, with charts and with a table for each
// of them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/run_description.h"

namespace lockstep {

inline constexpr std::size_t kMaxPageBytes = 1'000'000;
inline constexpr std::size_t kMaxChartPoints = 2000;

/// At most kMaxPageBytes: with long series or many runs fewer points are shown. The runs in the order given.
/// Errors: ConfigError if the runs are too many for one page.
std::string report_page(const std::vector<RunDescription>& runs);

}  // namespace lockstep
