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

bool smaller_is_better(const std::string& measure) {
  for (const MetricEntry& entry : metric_catalog()) {
    if (entry.name == measure) return entry.smaller_is_better;
  }
  return measure == "loss";
}

Measure::Measure(std::string name, const std::vector<std::string>& metrics, bool has_accuracy)
    : name_(std::move(name)) {
  std::vector<std::string> known{"loss"};
  if (has_accuracy) known.emplace_back("accuracy");
  known.insert(known.end(), metrics.begin(), metrics.end());
  if (std::ranges::find(known, name_) == known.end()) {
    throw ConfigError(
        fmt::format("train.early_stopping_metric is {}: expected one of '{}'; more measures come with "
                    "eval.metrics",
                    in_quotes(name_), fmt::join(known, "', '")));
  }
  smaller_is_better_ = smaller_is_better(name_);
}

std::optional<double> Measure::of(const EvalMetrics& evaluation) const {
  std::optional<double> found = name_ == "loss" ? evaluation.loss : evaluation.accuracy;
  for (const MetricValue& other : evaluation.others) {
    if (other.name == name_) found = other.value;
  }
  if (!found || !std::isfinite(*found)) return std::nullopt;
  return found;
}

bool Measure::is_better(double now, double before, double least) const {
  if (std::isnan(before)) return true;
  return smaller_is_better_ ? now < before - least : now > before + least;
}

BestEvaluation::BestEvaluation(Measure measure)
    : measure_(std::move(measure)), state_{std::numeric_limits<double>::quiet_NaN(), 0} {}

bool BestEvaluation::improves(const EvalMetrics& evaluation) {
  const std::optional<double> found = measure_.of(evaluation);
  if (!found || !measure_.is_better(*found, value())) return false;
  state_ = {*found, static_cast<double>(evaluation.progress.steps)};
  return true;
}

}  // namespace lockstep
