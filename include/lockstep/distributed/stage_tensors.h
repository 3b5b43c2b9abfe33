// The tensors of a micro-batch, or of a block of samples, that cross the borders of a stage.
#pragma once

#include <vector>

#include "lockstep/distributed/pipeline.h"
#include "lockstep/nn/workspace.h"

namespace lockstep {

/// The tensors that a chunk of the model takes from the stage on the other side, in the order of the
/// messages: activations of the stage before, or gradients from the stage behind.
std::vector<Buffer> incoming_tensors(Pipeline::Direction direction, const Model& chunk, Workspace& workspace);
/// And those that it gives: activations to the stage behind, or gradients to the stage before.
std::vector<ConstBuffer> outgoing_tensors(Pipeline::Direction direction, const Model& chunk,
                                          Workspace& workspace);

}  // namespace lockstep
