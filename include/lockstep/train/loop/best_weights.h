// The weights of the best evaluation, beside those that training goes on with.
#pragma once

#include <filesystem>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/nn/model.h"

namespace lockstep {

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
  void allocate();

  Communicator& comm_;
  Communicator& workers_;
  const Model& model_;
  AlignedBuffer<Scalar> stored_;
  Index step_ = -1;  // step of the weights that are kept
};

}  // namespace lockstep
