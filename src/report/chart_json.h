// Charts of points, which are not curves over steps, as the script of the page draws them.
#pragma once

#include <string>
#include <vector>

#include "report_charts.h"

namespace lockstep {

/// The numbers of a series as a JSON list; null for what is not finite.
std::string json_numbers(const std::vector<double>& values, const std::vector<std::size_t>& points,
                         int digits);

struct PointSeries {
  std::string label = {};
  std::string style = "line";  ///< "line", "points", "both", or "guide" for a line to compare with
  std::vector<double> x = {};
  std::vector<double> y = {};
};

struct PointChart {
  std::string section = {};
  std::string title = {};
  std::string summary = {};
  std::string x_name = {};
  std::string y_name = {};
  bool unit = false;  ///< both axes from 0 to 1
  std::vector<PointSeries> series = {};
};

/// Its table has the points of all series but guides, one after the other.
ChartPart point_chart(const PointChart& chart, const ChartLimits& limits);

/// Bars that are stacked: one for each name, of one piece for each series.
struct Bars {
  std::string section = {};
  std::string title = {};
  std::string of_names = {};
  std::vector<std::string> names = {};
  std::vector<std::string> series = {};
  std::vector<std::vector<double>> values = {};  ///< [series][name]
  bool percent = false;
  bool seconds = false;
  bool across = false;       ///< bars lie on their side, for few bars with long names
  std::string summary = {};  ///< "": what kind of chart it is
};

ChartPart bar_chart(const Bars& bars);

}  // namespace lockstep
