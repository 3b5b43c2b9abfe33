// A layer that knows rows alone, on each position of a sequence.
#pragma once

#include <memory>

#include "lockstep/nn/layer.h"

namespace lockstep {

/// Positions x channels become positions x what the layer makes of a vector of channels, with the same
/// weights at each position (PyTorch: Linear, LayerNorm, BatchNorm1d or Embedding of a sequence). Statistics
/// over the batch are those of the positions that count.
std::unique_ptr<Layer> on_positions(std::unique_ptr<Layer> layer);

}  // namespace lockstep
