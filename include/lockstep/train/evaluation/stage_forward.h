// The forward passes of blocks of samples through what a rank runs of a model, for evaluations and
// predictions. Blocks follow one another through the stages, so that all of these compute at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/distributed/pipeline.h"
#include "lockstep/nn/workspace.h"

namespace lockstep {

/// One thread's workspaces for blocks of at most so many rows, by chunk of the model, and the messages under
/// way from each of them to the next stage.
struct ForwardLane {
  ForwardLane(const Model& model, Index rows);
  std::vector<std::unique_ptr<Workspace>> workspaces;
  std::vector<std::unique_ptr<Request>> sending;

  /// Waits for all messages.
  void finish();
};

/// *Blocking.* Takes a block through a chunk of the `model` of a rank: receives what the stage before sends,
/// computes, and starts to send to the stage behind, once the last message from this chunk is gone. Every
/// rank of the group calls it for the same blocks in the order of for_each_pass(). `pipeline`: null where the
/// model is not divided. The outputs of the model, valid until the chunk's next pass; nothing if they are
/// those of a later chunk or stage.
std::optional<ConstMatrix> forward_stage(Pipeline* pipeline, const Model& model, Index chunk,
                                         ForwardLane& lane, const Pass& pass);

/// The passes of so many blocks through the chunks of a rank, in order: with several chunks, as many blocks
/// as there are stages go through one, then through the next. More would wait for each other, since a chunk
/// has memory for one block. `pipeline` may be null.
void for_each_pass(const Model& model, const Pipeline* pipeline, Range blocks,
                   const std::function<void(Index block, Index chunk)>& pass);

}  // namespace lockstep
