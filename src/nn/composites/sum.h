// y = a + b + ...: the join of residual and wide_deep.
#pragma once

#include <memory>

#include "lockstep/nn/layer.h"

namespace lockstep {

std::unique_ptr<Layer> make_sum();

}  // namespace lockstep
