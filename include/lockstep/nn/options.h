// Options of the model and its loss. Defaults stand here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

struct ModelOptions {
  std::string layers;
  std::string preset = {};
  Index outputs = 10;
  std::string init = "he";
  double init_std = 0.01;
  std::string batch_norm = "local";
  Precision precision = Precision::kFp32;
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
