// The predictions of plan --nodes, for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/plan/forecast.h"

namespace lockstep {

/// A way to exchange, on the nodes asked for.
struct ForecastRow {
  std::string strategy;
  std::string algorithm;        ///< "": the strategy has no choice
  bool divides_layers = false;  ///< ranks divide the layers with split=rows
  Forecast forecast;
};

/// On more and more nodes, with the exchange of the config.
struct GrowthRow {
  Index nodes = 1;
  Forecast forecast;
};

struct ScaleSection {
  Scaling scaling = Scaling::kWeak;
  std::vector<ForecastRow> ways = {};
  std::vector<GrowthRow> growth = {};
  std::string ended = {};                 ///< why growth ends before the nodes asked for; "" if it does not
  std::vector<std::string> refused = {};  ///< ways that cannot be run, and why
};

struct ScaleReport {
  ClusterRequest cluster;
  BenchFigures measured;
  std::string bench;     ///< file
  std::string exchange;  ///< exchange of the config: "allreduce, auto"
  Index gradient_bytes = 0;
  std::string note_on_order = {};  ///< the algorithms that the reduction rules out, and why; ""
  std::vector<ScaleSection> sections = {};
};

std::string to_text(const ScaleReport& report);
std::string to_json(const ScaleReport& report);

}  // namespace lockstep
