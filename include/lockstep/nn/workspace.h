// Room for the activations of one batch, and the walk through the nodes, forward and back. One per thread, or
// one per replica where replicas meet between nodes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/activations.h"
#include "lockstep/nn/gradient_check.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/row_blocks.h"

namespace lockstep {

/// One batch of one replica.
struct Pass {
  ModelValues values;
  ConstMatrix x;  ///< n x inputs
  BatchContext batch;
  std::span<const FactorRoom> factors = {};  ///< by node, for some (x is null: none there); or empty
  std::optional<GradientLimit> limit = {};   ///< none: nobody asks for good_gradient()
};

/// Sums over the batch of a node with statistics: this replica's, and those of all it is normalised with.
struct NodeSums {
  std::vector<double> own_forward;
  std::vector<double> forward;
  std::vector<double> own_backward;
  std::vector<double> backward;
};

class Workspace {
 public:
  /// Memory for batches of up to `max_rows` samples. At the ops `sync_points` the caller else fills in the
  /// sums of all replicas; at other nodes with statistics this replica's own sums are all there are.
  Workspace(const Model& model, Index max_rows, ActivationRetention kept,
            const std::vector<Index>& sync_points = {});

  /// The outputs (n x outputs) of the whole model; valid until the next pass. Requires no sync points.
  ConstMatrix forward(const Pass& pass);

  /// Starts a pass; x and values must outlive it.
  void begin(const Pass& pass);
  /// These nodes, in order. After a part of a run (row_blocks.h) the others find values of any samples,
  /// unless all is kept. In training, a node with statistics behind them finds sums().own_forward filled, as
  /// does the first node of all after begin().
  void forward(Range nodes);
  ConstMatrix outputs() const;
  /// After forward: the gradient of the loss by the outputs, to be filled before backward.
  Matrix output_gradient();
  /// These nodes, last first, and likewise; the gradient by the weights is summed over the samples into the
  /// arena `gradient`. `on_ready` (may be empty) is called after each node that has weights, and now and then
  /// during its work: all gradients from that place of the arena on are ready. A node with statistics
  /// before them finds sums().own_backward filled.
  void backward(Range nodes, std::span<Scalar> gradient, Write write, const GradientReadyCallback& on_ready);
  /// The whole way back.
  void backward(std::span<Scalar> gradient, Write write, const GradientReadyCallback& on_ready);

  /// After backward: no part of the gradient is NaN, or beyond the limit of the pass; see GradientCheck.
  bool good_gradient() const { return look_.good(); }

  /// Sums of a node with statistics in this pass.
  NodeSums& sums(Index node) { return sums_[static_cast<std::size_t>(node)]; }
  /// After forward: the first node whose output is not finite, if any. Requires that all outputs are kept.
  std::optional<Index> first_bad_node() const;

 private:
  struct Room {
    RetainedSamples kept;
    AlignedBuffer<Scalar> output;    // empty for a node whose output another owns
    AlignedBuffer<Scalar> gradient;  // of the output; likewise
    AlignedBuffer<Scalar> cache;
    std::vector<AlignedBuffer<Scalar>>
        scratch;  // by input: its gradient, where another node wrote one before
    bool syncs = false;
  };

  void plan_gradients(Index max_rows);
  Index owner_of(Index node) const;
  // Where a node's output is and its gradient, of a block of samples. The model's input is nobody's output,
  // and has no gradient: null.
  Scalar* output_of(Index node, Range rows);
  Scalar* gradient_of(Index node, Range rows);
  // What follows is about some of the samples. measure_...: for a node with statistics; else nothing.
  template <class Run>
  void in_blocks(Index rows_at_once, const Run& run) const;
  void gather_inputs(const ModelNode& node, Range rows, bool with_data);
  void measure_forward(Index node, Range rows);
  void measure_backward(Index node, Range rows);
  void run_forward(Index node, Range rows);
  void run_backward(Index node, Range rows, std::span<Scalar> gradient, Write write,
                    const GradientReadyCallback& on_ready);
  void zero_shared(std::span<Scalar> gradient);

  const Model& model_;
  const std::vector<NodeRun> forward_runs_;
  const std::vector<NodeRun> backward_runs_;
  std::vector<Room> rooms_;
  std::vector<NodeSums> sums_;
  std::vector<double> block_sums_;

  Index rows_ = 0;
  const Scalar* x_ = nullptr;
  ModelValues values_;
  BatchContext batch_;
  std::span<const FactorRoom> factors_;
  GradientCheck look_;
  Index ready_from_ = 0;             // in the arena of gradients, in the backward pass
  Range own_;                        // there: of the node that runs
  std::vector<ConstMatrix> inputs_;  // of the node that runs
  std::vector<Matrix> dinputs_;
  std::vector<Matrix*> wanted_dinputs_;
};

}  // namespace lockstep
