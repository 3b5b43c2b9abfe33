// Weights that layers of different stages, or of different chunks of one rank, share: dense(..., tie=LAYER).
// The rank of the layer that owns such a weight sends it to the ranks that compute with it, once before the
// passes of a step. These send back the gradient by it of each micro-batch, by itself. The owner adds that to
// its own before its backward pass of the micro-batch, last layer first: as one rank does, which computes it
// by itself, too. So the bits are those of one rank.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/nn/stages.h"
#include "lockstep/nn/workspace.h"

namespace lockstep {

/// The weights that ranks of a group borrow from each other.
class TiedWeights {
 public:
  /// *Collective over the group.* `pipeline`: null where the model is not divided: nothing is borrowed.
  /// Both outlive this.
  TiedWeights(Pipeline* pipeline, const Model& model);

  /// *Collective over the group.* Gives `values` with what this rank borrows, and starts to send what it
  /// lends of its weights. They stay as they are until finish().
  ModelValues share(const ModelValues& values);
  /// Waits until all is sent.
  void finish() {
    if (sending_) std::exchange(sending_, nullptr)->wait();
  }

 private:
  // A weight on its way to or from the rank of another stage.
  struct Message {
    int peer = 0;
    Range weight;
  };

  Pipeline* pipeline_;
  std::vector<Message> lent_;
  std::vector<Message> borrowed_;
  AlignedBuffer<Scalar> copies_;  // an arena of Model::borrowed()
  std::unique_ptr<Request> sending_;
};

/// The gradients by tied weights on their way from a chunk of the model to the chunk of the owner. A rank
/// keeps that of each micro-batch between the two, as many as can be on their way at a time. So it does not
/// wait for the owner.
class TiedGradients {
 public:
  /// *Collective over the group.* Both outlive this. `micro_batches`: of a step, or where replicas meet, of
  /// one of its parts.
  TiedGradients(Pipeline& pipeline, const Model& model, const PipelineSchedule& schedule,
                Index micro_batches);

  /// Before the backward pass of a micro-batch through a chunk: tells the workspace where to leave the
  /// gradients by weights that other chunks own.
  void begin(Index chunk, Index micro_batch, Workspace& workspace);
  /// Behind Workspace::begin_backward(): adds what other chunks gave for the weights of this one to its
  /// arena. *Blocking.*
  void add_received(Index chunk, Index micro_batch, std::span<Scalar> arena);
  /// After that pass: starts to send what begin() was about.
  void send(Index chunk, Index micro_batch);
  /// Waits until all is sent.
  void finish();

 private:
  struct Slot {
    AlignedBuffer<Scalar> gradient;
    std::unique_ptr<Request> sending = nullptr;
  };
  // A tie whose gradients a chunk of this rank sends to the owner: a slot for each micro-batch on its way.
  struct SentGradient {
    Index chunk = 0;
    Index op = 0;  // of the chunk
    int peer = 0;
    int channel = 0;
    std::vector<Slot> slots = {};

    Slot& slot(Index micro_batch) { return at(slots, micro_batch % std::ssize(slots)); }
  };
  // A tie whose gradients a chunk of this rank receives, as it owns the weight.
  struct ReceivedGradient {
    Index chunk = 0;
    Range weight;
    int peer = 0;
    int channel = 0;
  };

  std::span<const Scalar> receive(const ReceivedGradient& source, Index micro_batch);

  Pipeline& pipeline_;
  std::vector<SentGradient> sent_;
  std::vector<ReceivedGradient> received_;
  AlignedBuffer<Scalar> receive_buffer_;
};

/// Bytes of the tied weights of a rank that runs a stage.
struct TiedBytes {
  Index kept_gradients = 0;  ///< memory for gradients on their way
  Index borrowed = 0;        ///< weights that it receives once a step
  Index lent = 0;            ///< and sends
  Index returned = 0;        ///< gradients that it sends with each micro-batch
  Index collected = 0;       ///< and receives
};

/// `stages`: of all ranks of a group, in order.
TiedBytes tied_bytes(std::span<const std::unique_ptr<Model>> stages, Index stage,
                     const PipelineSchedule& schedule, Index micro_batches);

}  // namespace lockstep
