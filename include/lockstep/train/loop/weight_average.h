// The average of the weights over the steps of a run, which is evaluated and kept in their place: exponential
// (Polyak & Juditsky 1992), or uniform, called stochastic weight averaging (Izmailov et al. 2018). Training
// goes on with the weights themselves.
//
// Each rank averages its slice of the arena: a number of the average depends on that number of the weights
// alone, so it has the same bits whoever owns it. gather_model() puts the slices together. Running moments of
// batch norm are averaged, too, on rank 0; set_moments() replaces them by those of the averaged weights.
#pragma once

#include <algorithm>
#include <filesystem>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/storage/checkpoint.h"

namespace lockstep {

class WeightAverage {
 public:
  /// `decay`: of the exponential average; 0: the average is uniform. References must outlive it.
  WeightAverage(Communicator& comm, const Model& model, ThreadTeam& team, double decay);

  bool is_uniform() const { return decay_ == 0; }
  /// Whether there is an average yet: before, the weights are the model.
  bool has_begun() const { return count_ > 0; }
  /// *Local, all ranks.* Averages the weights as they are now; the first ones are the average. `moments`: on
  /// rank 0, the running moments as they are now; empty if set_moments() follows.
  void add(std::span<const Scalar> weights, std::span<const Scalar> moments);
  /// *Local, all ranks.* Running moments that were measured under the averaged weights, the same on all
  /// ranks.
  void set_moments(std::span<const Scalar> moments) { std::ranges::copy(moments, this->moments().begin()); }
  /// *Collective.* The averaged weights and moments, on every rank; valid until the next add(). Requires
  /// has_begun().
  ModelValues gather_model();

  /// *Local.* The count, which every rank needs to resume; the average itself is a checkpoint's model.
  void add_saved(SavedState& state);
  /// *Local.* The weights that training goes on with, beside the average in a checkpoint. Their slices are
  /// copied.
  void add_training_weights(SavedState& state, std::span<const Scalar> weights);
  /// *Collective.* Once the count is filled again: all ranks get the average that rank 0 was given.
  void resume() {
    if (has_begun()) comm_.broadcast(as_buffer(values_.span()), 0);
  }
  /// Rank 0: takes weights and moments of a model file for the average that resume() goes on with.
  void load(const ModelValues& values);

 private:
  std::span<Scalar> weights() { return part(values_.span(), {0, model_.layout().size}); }
  std::span<Scalar> moments() { return part(values_.span(), {model_.layout().size, values_.size()}); }
  // The share of the next weights in the average.
  double next_share() const;

  Communicator& comm_;
  const Model& model_;
  ThreadTeam& team_;
  double decay_;
  std::vector<Range> slices_;     // the slice of each rank
  AlignedBuffer<Scalar> values_;  // the average as in a model file; of weights only the own slice is current
  AlignedBuffer<Scalar> training_weights_;  // the own slice, as it was saved last
  Index count_ = 0;                         // weights that were averaged
  bool gathered_ = false;                   // values_ is whole on every rank
};

/// Rank 0: the weights and moments that a run goes on with, from a checkpoint into an arena of
/// stored_layout(). Where the model of the checkpoint is an average, the weights are beside it, and `average`
/// (may be null) gets the model. Errors: DataError.
void load_training_values(const CheckpointReader& checkpoint, const Model& model, std::span<Scalar> stored,
                          WeightAverage* average);

// The weights of the best evaluation, beside those that training goes on with.

class BestWeights {
 public:
  /// All must outlive it. `workers`: the ranks that have the weights of `model`; all, where it is no stage.
  BestWeights(Communicator& comm, Communicator& workers, const Model& model)
      : comm_(comm), workers_(workers), model_(model) {}

  /// The first worker holds on to a copy of the weights after `step`: a disk that is full must not lose them.
  void keep(const ModelValues& values, Index step);
  /// *Collective.* All ranks get the weights after `step`: those that the first worker has kept, or, if that
  /// was before the run was resumed, those of the checkpoint in `directory`. False, with a warning, if they
  /// are lost.
  bool load(Index step, const std::filesystem::path& directory);

  /// Weights and running moments. Requires load().
  ModelValues values() const { return stored_values(model_, stored_.span()); }
  /// Hands them over as a model file holds them; nothing is left here.
  AlignedBuffer<Scalar> take() { return std::move(stored_); }

 private:
  void allocate() {
    if (stored_.size() == 0) stored_ = AlignedBuffer<Scalar>(model_.stored_layout().size);
  }

  Communicator& comm_;
  Communicator& workers_;
  const Model& model_;
  AlignedBuffer<Scalar> stored_;
  Index step_ = -1;  // step of the weights that are kept
};

}  // namespace lockstep
