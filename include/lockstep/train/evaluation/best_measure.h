// The measure by which one evaluation of a run is the best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

class BestMeasure {
 public:
  /// `name`: "loss", "accuracy", or one of `metrics`, those of eval.metrics. Errors: ConfigError for another.
  BestMeasure(std::string name, const std::vector<std::string>& metrics, bool has_accuracy);

  /// Whether an evaluation is better than all before it, which it then is the best of. One in which the
  /// measure is not defined is not.
  bool improves(const EvalMetrics& evaluation);
  /// The best value so far: NaN before the first. A resumed run sets it.
  double& value() { return best_; }

 private:
  std::string name_;
  bool smaller_is_better_ = true;
  double best_;
};

}  // namespace lockstep
