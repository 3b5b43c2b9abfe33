// Factors on the learning rate and on the weight decay of some tensors: train.lr_multiplier and
// train.weight_decay_multiplier, "PATTERN: FACTOR" each. A pattern is a kind (bias, norm, embedding) or a
// name as in the model file, in which * stands for any text. Of several that fit a tensor the last one
// counts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/distributed/update.h"
#include "lockstep/nn/model.h"
#include "lockstep/optim/options.h"

namespace lockstep {

/// The rules by which the tensors of the model are updated. Errors: ConfigError for a text without pattern or
/// factor, a pattern that fits no tensor, and a model of which nothing would be trained.
UpdateRules update_rules(const Model& model, const OptimizerOptions& options);

/// Sentences about the multipliers: "Learning rate times 2: 0.bias, 2.bias"; empty where no multiplier is
/// given. Errors: as update_rules.
std::vector<std::string> describe_multipliers(const Model& model, const OptimizerOptions& options);

}  // namespace lockstep
