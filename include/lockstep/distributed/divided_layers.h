// Layers whose weights the ranks divide among themselves: tensor parallel, model parallel inside a layer
// (Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks"). Each rank has the
// weights of its blocks (split_layer.h) and computes their outputs for the samples of all replicas.
//
// All replicas meet at such a layer. Forward: every rank gets the inputs of all replicas, computes its
// blocks, and sends the outputs to the ranks that host the samples; of an embedding these are the vectors of
// the rows that it has, and the indices, which all ranks know, say where they belong. Backward: these send
// the gradients of the outputs to the owners of the blocks. An owner adds the gradients of its weights over
// all replicas along the fixed tree, so that nothing of them is exchanged, and sends its part of the gradient
// of the inputs back: sums of whole subtrees of the fixed tree over the blocks. All products and sums are
// those of a rank that computes the layer alone, so the bits are, too.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/math/fixed_tree.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/split_layer.h"

namespace lockstep {

/// Weights of the layers that so many ranks can divide: those of each split layer of the model.
std::vector<DividedTensor> divide_split_layers(const Model& model, Index ranks);

/// Ops before which all replicas meet: those that add statistics over replicas, and those that ranks divide.
std::vector<Index> sync_points(const Model& model, const Plan& plan);
/// Whether replicas meet at ops, of this model or, if it is a stage, of another one.
bool runs_in_lockstep(const Model& model, const Plan& plan);
/// Whether the replicas of a rank go through the model side by side, so that the gradient of none of them is
/// complete before the others have begun.
bool interleaves(const Model& model, const Plan& plan);

/// Bytes of a rank for the samples that it exchanges at the layers that ranks divide.
Index divided_layer_bytes(const Model& model, const Plan& plan, Index rank);
/// Bytes that a rank sends in a step at these layers. Where the samples decide how much is sent, on average.
Index divided_layer_sent_bytes(const Model& model, const Plan& plan, Index rank);

class DividedLayer {
 public:
  /// Runs messages, which all ranks exchange together.
  using Exchange = std::function<void(const std::function<void()>&)>;

  /// References must outlive it.
  DividedLayer(Communicator& comm, const Plan& plan, const Model& model, const DividedTensor& tensor);

  /// `rows[r]`: samples of replica r in the step.
  void begin_step(std::span<const Index> rows);
  /// *Collective.* `inputs` (n x inputs) and `outputs` (n x outputs, to be written): of each replica hosted
  /// here, in order; those of a replica without samples are left alone. Errors: DataError, on the rank that
  /// hosts a sample that the layer does not take.
  void forward(const ModelValues& values, std::span<const ConstMatrix> inputs, std::span<Matrix> outputs,
               const Exchange& exchange);
  /// *Collective*, after forward() with the same values. `dy` (n x outputs) and `dx` (n x inputs, to be
  /// written; null where nobody wants it): likewise. The gradient of the own blocks, summed over all
  /// replicas, is written into the arena `gradient`.
  void backward(const ModelValues& values, std::span<const ConstMatrix> dy, std::span<Matrix> dx,
                std::span<Scalar> gradient, const Exchange& exchange);

 private:
  BlockOutputs<Scalar> own_outputs(Index replica);
  BlockOutputs<Scalar> hosted_outputs(Index replica, Range blocks);
  ConstMatrix input_of(Index replica) const {
    return {inputs_.data() + at(first_row_, replica) * inputs_size_, rows_of(replica), inputs_size_};
  }
  std::span<Scalar> own_sum(Index replica, std::size_t subtree);
  std::span<Scalar> received_sum(Index replica, std::size_t subtree);
  Index rows_of(Index replica) const { return at(rows_, replica); }
  Index rank_of(Index replica) const { return part_of(plan_.replicas, plan_.workers(), replica); }

  void exchange_outputs(bool forward);
  void add_weight_gradients(std::span<Scalar> gradient);
  void add_input_gradients(const ModelValues& values);
  void exchange_input_gradients();
  void merge_input_gradients(std::span<Matrix> dx);

  Communicator& comm_;
  const Plan& plan_;
  const DividedTensor& tensor_;
  const SplitLayer& layer_;
  const UnitBlocks& blocks_;
  Range own_;     // blocks
  Range hosted_;  // replicas
  Index inputs_size_;
  bool wants_dx_;                             // its inputs have a gradient that somebody wants
  std::vector<std::vector<Range>> subtrees_;  // of the tree over the blocks, by the rank that owns them
  std::vector<Range> all_subtrees_;
  MergePlan merges_;
  std::vector<std::span<Scalar>> pieces_;  // of a replica's input gradients, from all subtrees
  std::vector<Index> rows_;
  std::vector<Index> first_row_;    // of each replica among the samples of the step; their number behind them
  std::vector<Range> input_parts_;  // of inputs_, by the rank that hosts the samples
  std::vector<BlockBegins> begins_;       // of the outputs of each replica
  AlignedBuffer<Scalar> inputs_;          // samples of all replicas
  AlignedBuffer<Scalar> own_outputs_;     // outputs of the own blocks for these, or their gradients
  AlignedBuffer<Scalar> hosted_outputs_;  // outputs of all blocks for the samples hosted here, or gradients
  AlignedBuffer<Scalar> own_sums_;        // gradients of the inputs from the own subtrees, for all samples
  AlignedBuffer<Scalar> received_sums_;   // those of all subtrees, for the samples hosted here
  AlignedBuffer<Scalar> spare_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace lockstep
