// Buffers for the activations of one batch, and the passes through the ops, forward and backward. One per
// thread, or one per replica if replicas sync between ops.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/split_layer.h"

namespace lockstep {

// How much of the activations of a batch is kept. What only the ops of one run use (OpRun) is kept
// for the samples that the run takes at a time: written and read again while it is in the cache.

enum class ActivationRetention {
  kForEvaluation,  ///< buffers that the forward pass needs
  kForTraining,    ///< buffers that the forward and backward passes need
  kOutputs,        ///< every output of every sample, to be looked at after the forward pass of training
  kAll,            ///< every gradient too: ops can be taken one by one
};

/// Capacity of an op's buffers in samples: a batch, one block of it, or 0 if it uses another op's.
struct RetainedSamples {
  Index output = 0;
  Index gradient = 0;  ///< capacity for the gradient of the output
};

/// The offsets of buffers in one memory, in scalars. Two overlap if they are never needed at once.
struct SharedMemory {
  std::vector<Index> begin;
  Index size = 0;
};

/// The memory of outputs and of their gradients, by op, for batches of up to `batch` samples.
struct ActivationMemory {
  std::vector<RetainedSamples> samples;
  SharedMemory outputs = {};
  SharedMemory gradients = {};
};
ActivationMemory activation_memory(const Model& model, Index batch, ActivationRetention kept);

/// Scalars of the largest weight that ops of the model share: the gradient by one of them has memory of its
/// own before it is added to that of the owner. 0: none is shared.
Index tied_gradient_size(const Model& model);

/// Bytes of all that and of what layers keep for the backward pass, but not of gradients of activations that
/// are added to others.
Index activation_bytes(const Model& model, Index batch, ActivationRetention kept);

// Which ops a pass takes through a few samples at a time, so that what one op writes is still in the
// cache when the next reads it.

/// Neighbours in the order of ops that can take the samples of a batch in parts. Their weights are few
/// enough for one bucket.
struct OpRun {
  Range ops;
  Index rows = 0;  ///< samples at a time; 0: all at once

  /// Samples of a batch that the run takes at a time.
  Index rows_of(Index batch) const { return rows > 0 ? std::min(rows, batch) : batch; }
};

/// For the forward pass: each op is in one run, in order. An op with statistics starts a run, for it needs
/// the sums of all samples; an op with large weights, which is better off with many samples, runs alone, and
/// so does one that shares its weights.
std::vector<OpRun> forward_runs(const Model& model);

/// The runs of the backward pass, with more samples at a time. An op with statistics runs alone, too.
/// Gradients of a run are final with its last samples.
std::vector<OpRun> backward_runs(const Model& model);

/// For a stage that is not the last: the samples at a time with which the backward pass comes from the op
/// behind it; 0: all at once.
Index backward_rows_behind(const Model& model);

// Whether the gradient of an op has a part that no sound training has: asked by who makes it, where much of
// it, or of what it is made of, is still in the cache.

/// The limit for a replica that has `samples` in a step, of which a pass has some.
struct GradientLimit {
  Scalar most = 0;  ///< limit for the absolute value of each part of its gradient
  Index samples = 0;
  bool complete = true;  ///< nothing is added to its arena after the pass
};

class GradientCheck {
 public:
  /// Forgets the last pass. No limit: nobody asks.
  void begin(Index rows, const std::optional<GradientLimit>& limit);
  /// Before an op goes back with some of the samples, x (n x in) and dy (n x out). `factored`: leaves them
  /// as factors. The tensor of its gradient that they check well enough; empty if there is none.
  Range check_factors(const ModelOp& op, const ConstMatrix& x, const ConstMatrix& dy, bool factored);
  /// After it went back with the last of them: all of its gradient but the tensor `checked`, if it is
  /// complete.
  void check_sums(const ModelOp& op, Range checked, std::span<const Scalar> gradient);
  /// Since begin(): no part of what was looked at is NaN, or beyond what its samples may give. The arena has
  /// been looked at once it is complete, and its factors in every pass.
  bool good() const { return good_; }

 private:
  Index rows_ = 0;
  std::optional<GradientLimit> limit_;
  bool good_ = true;
};

/// One batch of one replica.
struct Pass {
  ModelValues values;
  ConstMatrix x;  ///< n x inputs
  BatchContext batch;
  std::span<const FactorBuffers> factors = {};  ///< buffers by op (x is null: the op has none); or empty
  std::optional<GradientLimit> limit = {};      ///< none: nobody asks for good_gradient()
};

/// Sums over the batch of an op with statistics: this replica's, and those of all it is normalised with.
struct OpSums {
  std::vector<double> own_forward;
  std::vector<double> forward;
  std::vector<double> own_backward;
  std::vector<double> backward;
};

class Workspace {
 public:
  /// Memory for batches of up to `max_rows` samples. At the ops `sync_points` the caller fills in the
  /// sums of all replicas; at other ops with statistics this replica's own sums are all there are. A split
  /// layer among them is computed by the caller: see output() and input_gradient().
  Workspace(const Model& model, Index max_rows, ActivationRetention kept,
            const std::vector<Index>& sync_points = {});

  /// The outputs (n x outputs) of the whole model; valid until the next pass. Requires no sync points.
  ConstMatrix forward(const Pass& pass);

  /// Starts a pass; x and values must outlive it.
  void begin(const Pass& pass);
  /// These ops, in order. After a part of a run (OpRun) the others find values of any samples,
  /// unless all is kept. In training, an op with statistics behind them finds sums().own_forward filled, as
  /// does the first op of all after begin().
  void forward(Range ops);
  ConstMatrix outputs() const { return output_of_op(std::ssize(buffers_) - 1); }
  /// The outputs that training takes the loss of: those of an ensemble's members side by side, n x (members *
  /// outputs), else outputs().
  ConstMatrix trained_outputs() const { return output_of_op(trained_op()); }
  /// After begin(): the output of an op, and the gradient of it. Others may compute them: a stage fills in
  /// the outputs of Model::received() before forward, and the gradients of Model::sent() before backward; at
  /// a sync point the output of a split layer is filled in.
  Matrix output(Index op) { return {output_of(op, {0, rows_}), rows_, model_.op(op).out.size()}; }
  Matrix gradient(Index op) { return {gradient_of(op, {0, rows_}), rows_, model_.op(op).out.size()}; }
  /// For a split layer at a sync point: what it takes, after the ops before it.
  ConstMatrix input(Index op) const;
  /// And in the backward pass, after the ops behind it: the gradient of that, to be filled; null if nobody
  /// wants it.
  Matrix input_gradient(Index op);
  /// After forward: the gradient of the loss by the trained outputs, to be filled before backward.
  Matrix output_gradient() {
    return {gradient_of(trained_op(), {0, rows_}), rows_, model_.op(trained_op()).out.size()};
  }
  /// For an op that shares a weight with an op outside of the model: its gradient by that goes there, and is
  /// not added to any arena. To be set before backward.
  void set_tied_gradient(Index op, std::span<Scalar> gradient) { at(buffers_, op).tied_gradient = gradient; }
  /// Begins the way back, once the output gradient is there: sets the gradient of weights that ops share to
  /// zero, if it is to be replaced. What ops outside of the model give for such a weight can be added to it
  /// from now on.
  void begin_backward(std::span<Scalar> gradient, Write write);
  /// These ops, last first, and likewise; the gradient by the weights is summed over the samples into the
  /// arena `gradient`. `on_ready` (may be empty) is called after each op that has weights, and now and then
  /// during its work: all gradients from that offset of the arena on are ready. An op with statistics
  /// before them finds sums().own_backward filled.
  void backward(Range ops, std::span<Scalar> gradient, Write write, const GradientReadyCallback& on_ready);
  /// The whole way back, begun as well.
  void backward(std::span<Scalar> gradient, Write write, const GradientReadyCallback& on_ready);

  /// After backward: no part of the gradient is NaN, or beyond the limit of the pass; see GradientCheck.
  bool good_gradient() const { return look_.good(); }

  /// Sums of an op with statistics in this pass.
  OpSums& sums(Index op) { return at(sums_, op); }
  /// After forward: the first op whose output is not finite, if any. Requires that all outputs are kept.
  std::optional<Index> first_bad_op() const;

 private:
  struct OpBuffers {
    RetainedSamples kept;
    Scalar* output = nullptr;    // null for an op whose output another owns
    Scalar* gradient = nullptr;  // gradient of the output; likewise
    AlignedBuffer<Scalar> cache;
    // Offsets in scratch_ of the gradients of inputs to which another op wrote one before.
    std::vector<std::optional<Index>> scratch;
    std::span<Scalar> tied_gradient;  // of the weight that the op shares, on its way to the owner's
    bool syncs = false;
    const SplitLayer* computed_outside = nullptr;  // at a sync point
  };

  void plan_gradients(Index max_rows);
  Index owner_of(Index op) const { return op == kModelInput ? kModelInput : at(model_.output_owners(), op); }
  ConstMatrix output_of_op(Index op) const;
  // The op whose output training takes the loss of.
  Index trained_op() const { return std::ssize(buffers_) - (model_.members() > 1 ? 2 : 1); }
  // The output of an op and its gradient, for a block of samples. The model's input is no op's output and has
  // no gradient: null.
  Scalar* output_of(Index op, Range rows);
  Scalar* gradient_of(Index op, Range rows);
  // The functions below work on some of the samples. measure_...() does nothing for an op without statistics.
  template <class Run>
  void in_blocks(Index rows_at_once, const Run& run) const;
  void gather_inputs(const ModelOp& op, Range rows, bool with_data);
  void gather_input_gradients(const ModelOp& op, OpBuffers& own, Range rows);
  PassArgs pass_args(Index op, Range rows) const;
  Lengths lengths_of(const ModelOp& op, Range rows) const;
  std::span<Scalar> cache_of(Index op, Range rows);
  Scalar* input_gradient_of(const ModelOp& op, OpBuffers& own, std::size_t input, Range rows);
  void measure_forward(Index op, Range rows);
  void measure_backward(Index op, Range rows);
  void run_forward(Index op, Range rows);
  void run_backward(Index op, Range rows, std::span<Scalar> gradient, Write write,
                    const GradientReadyCallback& on_ready);

  const Model& model_;
  const std::vector<OpRun> forward_runs_;
  const std::vector<OpRun> backward_runs_;
  const Index rows_behind_;  // see backward_rows_behind()
  std::vector<OpBuffers> buffers_;
  std::vector<OpSums> sums_;
  std::vector<double> block_sums_;
  AlignedBuffer<Scalar> outputs_;
  AlignedBuffer<Scalar> gradients_;
  AlignedBuffer<Scalar> scratch_;  // of one op
  AlignedBuffer<Scalar> tied_;     // see tied_gradient_size()

  Index rows_ = 0;
  const Scalar* x_ = nullptr;
  ModelValues values_;
  BatchContext batch_;
  std::span<const FactorBuffers> factors_;
  GradientCheck look_;
  Index ready_from_ = 0;  // offset from which the arena of gradients is final, in the backward pass
  Range own_;             // range of the op that runs in that arena
  std::vector<ConstMatrix> inputs_;  // inputs of the op that runs
  std::vector<Matrix> dinputs_;
  std::vector<Matrix*> wanted_dinputs_;
};

}  // namespace lockstep
