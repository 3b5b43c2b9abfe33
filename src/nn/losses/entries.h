// The entry of each loss, one per file of this folder.
#pragma once

#include "lockstep/nn/loss.h"

namespace lockstep {

LossEntry softmax_cross_entropy_entry();
LossEntry binary_cross_entropy_entry();
LossEntry mean_squared_error_entry();
LossEntry huber_entry();

}  // namespace lockstep
