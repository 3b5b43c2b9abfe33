// The entry of each optimizer, one per file of this folder.
#pragma once

#include "lockstep/optim/optimizer.h"

namespace lockstep {

OptimizerEntry sgd_entry();
OptimizerEntry adam_entry();
OptimizerEntry adamw_entry();
OptimizerEntry adagrad_entry();
OptimizerEntry rmsprop_entry();
OptimizerEntry lamb_entry();

}  // namespace lockstep
