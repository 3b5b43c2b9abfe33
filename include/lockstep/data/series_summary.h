// The contents of a table of series of time, for someone who is about to forecast them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

/// A number of positions after which labels come again.
struct Season {
  Index positions = 0;
  double autocorrelation = 0;  ///< of the labels, a moving mean over so many positions taken off
};

/// The seasons of which the autocorrelation is high, the most so first, among those that are `usual` or else
/// all lengths. One is seen three times at least, and is no multiple of one as good. Not a number: no value.
std::vector<Season> find_seasons(std::span<const std::vector<double>> series, std::vector<Index> usual = {});

struct SeriesSummary {
  Index series = 0;
  Index shortest = 0;  ///< positions of a series
  Index median = 0;
  Index longest = 0;
  std::string first;  ///< time
  std::string last;
  std::string step;                ///< the usual one: "1 day"
  std::vector<std::string> notes;  ///< on gaps and irregular steps
  std::vector<Season> seasons;
};

/// Reads the series that data.time and data.series name, and the labels. Errors: as read_time_axis.
SeriesSummary summarise_series(const RecordSource& table, const DataOptions& data);

}  // namespace lockstep
