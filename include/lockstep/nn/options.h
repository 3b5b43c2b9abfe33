// Options of the model and its loss. Defaults stand here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// The past of each label in a record of time windows is scaled, and the outputs are scaled back: kLast
/// subtracts its last value (NLinear), kStandard its mean, and divides by its deviation (RevIN).
struct WindowScaling {
  enum class Kind { kNone, kLast, kStandard };
  Kind kind = Kind::kNone;
  Index labels = 0;
  Index window = 0;  ///< numbers of a past; those of all labels, side by side, begin a record
};

struct ModelOptions {
  std::string layers;
  std::string preset = {};
  Index outputs = 10;
  std::string init = "he";
  double init_std = 0.01;
  std::string batch_norm = "local";
  Precision precision = Precision::kFp32;
  WindowScaling window_scaling = {};
};

struct LossOptions {
  std::string loss = "softmax_cross_entropy";
  double label_smoothing = 0.0;
  double huber_delta = 1.0;
  std::vector<double> quantiles = {0.5};
  double tweedie_power = 1.5;
  double focal_gamma = 2.0;
  double focal_alpha = 0.0;  ///< 0: yes and no count alike
};

}  // namespace lockstep
