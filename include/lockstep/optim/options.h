// Options of optimizers and learning-rate schedules. Defaults stand here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

struct OptimizerOptions {
  std::string optimizer = "sgd";
  double momentum = -1;  ///< below 0: the optimizer's own
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = -1;  ///< likewise
  double epsilon = 1e-8;
  double rho = 0.99;
  double momentum_decay = 0.004;
  double beta2_decay = 0.8;
  bool scale_parameter = false;
  double adamw_lr_multiplier = 0.015;
  double weight_decay = 0.0;
  double clip_norm = 0.0;
  double clip_value = 0.0;
  std::vector<std::string> lr_multiplier = {};            ///< "PATTERN: FACTOR"
  std::vector<std::string> weight_decay_multiplier = {};  ///< likewise

  double momentum_or(double own) const { return momentum < 0 ? own : momentum; }
  double beta2_or(double own) const { return beta2 < 0 ? own : beta2; }
};

struct ScheduleOptions {
  double lr = 0.01;
  std::string lr_scaling = "none";
  Index lr_reference_batch = 256;
  std::string schedule = "constant";
  std::string warmup = "0 steps";
  double warmup_from = 0.1;
  std::string decay_every = "30 epochs";
  double decay_factor = 0.1;
  double decay_power = 1.0;
  double end_lr = 0.0;
  std::vector<std::string> milestones = {};
  double warmup_share = 0.3;
  double decay_share = 0.2;
  std::string plateau_patience = "10 evaluations";
  double plateau_min_delta = 0.0;
};

}  // namespace lockstep
