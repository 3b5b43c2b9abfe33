// Options of optimizers and learning-rate schedules. Defaults stand here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

struct OptimizerOptions {
  std::string optimizer = "sgd";
  double momentum = 0.0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double rho = 0.99;
  double weight_decay = 0.0;
  double clip_norm = 0.0;
  double clip_value = 0.0;
  std::vector<std::string> lr_multiplier = {};            ///< "PATTERN: FACTOR"
  std::vector<std::string> weight_decay_multiplier = {};  ///< likewise
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
