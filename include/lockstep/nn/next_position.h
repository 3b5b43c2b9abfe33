// The outputs of a model of sequences for one position after another, as text is generated: layers keep what
// they need of the positions before (LayerTraits::kept_size), and nothing is computed twice.
#pragma once

#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/model.h"

namespace lockstep {

/// Whether no layer sees a position behind its own, so that a shorter sequence has the first of the outputs.
bool is_causal(const Model& model);

class NextPosition {
 public:
  /// For so many samples side by side. Errors: ConfigError naming a layer that cannot go on by one position.
  NextPosition(const Model& model, Index samples);

  /// Positions that were taken since the start.
  Index position() const { return position_; }
  void start_again() { position_ = 0; }
  /// Takes the next position of each sample, x (samples x channels); gives the outputs there, valid until the
  /// next call. All calls since the start have the same values. Requires position() < the model's positions.
  ConstMatrix next(const ModelValues& values, const ConstMatrix& x);

 private:
  struct OpMemory {
    AlignedBuffer<Scalar> output, cache, kept;
  };

  ConstMatrix output_of(Index op, const ConstMatrix& x) const;

  const Model& model_;
  Index samples_;
  Index position_ = 0;
  std::vector<OpMemory> memory_;  // by op
};

}  // namespace lockstep
