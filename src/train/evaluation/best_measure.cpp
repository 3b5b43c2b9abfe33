#include "lockstep/train/evaluation/best_measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

BestMeasure::BestMeasure(std::string name, const std::vector<std::string>& metrics, bool has_accuracy)
    : name_(std::move(name)), best_(std::numeric_limits<double>::quiet_NaN()) {
  std::vector<std::string> known{"loss"};
  if (has_accuracy) known.emplace_back("accuracy");
  known.insert(known.end(), metrics.begin(), metrics.end());
  if (std::ranges::find(known, name_) == known.end()) {
    throw ConfigError(
        fmt::format("checkpoint.best is {}: expected one of '{}'; more measures come with "
                    "eval.metrics",
                    in_quotes(name_), fmt::join(known, "', '")));
  }
  if (name_ == "accuracy") smaller_is_better_ = false;
  for (const MetricEntry& entry : metric_catalog()) {
    if (entry.name == name_) smaller_is_better_ = entry.smaller_is_better;
  }
}

bool BestMeasure::improves(const EvalMetrics& evaluation) {
  std::optional<double> found = name_ == "loss" ? evaluation.loss : evaluation.accuracy;
  for (const MetricValue& other : evaluation.others) {
    if (other.name == name_) found = other.value;
  }
  if (!found || !std::isfinite(*found)) return false;
  const bool better = std::isnan(best_) || (smaller_is_better_ ? *found < best_ : *found > best_);
  if (better) best_ = *found;
  return better;
}

}  // namespace lockstep
