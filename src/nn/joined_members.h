// The last op of an ensemble: the outputs of its members become those of the model, such that its prediction
// is the mean of theirs.
#pragma once

#include <memory>

#include "lockstep/nn/layer.h"
#include "lockstep/nn/loss.h"

namespace lockstep {

/// From {members, outputs} to {outputs}. `link`: how outputs become predictions.
std::unique_ptr<Layer> join_members(Link link);

}  // namespace lockstep
