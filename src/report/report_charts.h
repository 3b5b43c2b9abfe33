// The charts of a page: the numbers that the script of the page draws, as JSON, and the same in tables.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/report_page.h"

namespace lockstep {

/// The most that one chart shows.
struct ChartLimits {
  std::size_t points = kMaxChartPoints;  ///< points of a series
  std::size_t rows = 40;                 ///< rows of a table
};

struct ChartPart {
  std::string section;  ///< section of the page: "curves", "speed", "time", ..., as report_page.cpp has them
  std::string title;
  std::string summary;  ///< one sentence for those who do not see it
  std::string json;     ///< an object for the script
  std::string table;    ///< HTML
};

std::vector<ChartPart> make_charts(const std::vector<RunDescription>& runs, const ChartLimits& limits);

/// The name of a curve in a title: "Learning rate" for "lr".
std::string title_of(const std::string& measure);

}  // namespace lockstep
