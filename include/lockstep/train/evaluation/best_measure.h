// The measure by which evaluations of a run are compared, and the evaluation that is the best by it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

/// Whether the smallest value of "loss", "accuracy" or a metric is its best.
bool smaller_is_better(const std::string& measure);

/// One number of an evaluation, with the direction in which it is better.
class Measure {
 public:
  /// `name`: "loss", "accuracy", or one of `metrics`, those of eval.metrics. Errors: ConfigError for another.
  Measure(std::string name, const std::vector<std::string>& metrics, bool has_accuracy);

  const std::string& name() const { return name_; }
  /// Its value; nothing where it is not defined or no finite number.
  std::optional<double> of(const EvalMetrics& evaluation) const;
  /// Whether `now` is better than `before` by more than `least`. Anything is better than NaN.
  bool is_better(double now, double before, double least = 0) const;

 private:
  std::string name_;
  bool smaller_is_better_ = true;
};

class BestEvaluation {
 public:
  explicit BestEvaluation(Measure measure);

  /// Whether an evaluation is better than all before it, which it then is the best of. One in which the
  /// measure is not defined is not.
  bool improves(const EvalMetrics& evaluation);

  const Measure& measure() const { return measure_; }
  double value() const { return state_[0]; }                    ///< NaN before the first
  Index step() const { return static_cast<Index>(state_[1]); }  ///< after which it was made
  /// The numbers that a resumed run needs.
  std::span<double> state() { return state_; }

 private:
  Measure measure_;
  std::array<double, 2> state_;
};

}  // namespace lockstep
