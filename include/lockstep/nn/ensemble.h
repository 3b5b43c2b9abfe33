// An ensemble: members that share weights and stand side by side in the activations of a sample. Training
// takes the mean of their losses; the prediction is the mean of theirs.
#pragma once

#include "lockstep/nn/loss.h"

namespace lockstep {

/// The layer that ends an ensemble, the last one of a model text: its output is {members, outputs}, and Model
/// adds the op that joins them.
class EnsembleEnd {
 public:
  virtual ~EnsembleEnd() = default;
  virtual Index members() const = 0;
};

/// As evaluate_weighted, but the mean of the losses of the members. outputs and gradient: n x (members *
/// outputs), those of a sample's members side by side.
double evaluate_members(const Loss& loss, Index members, const ConstMatrix& outputs,
                        const ConstMatrix& targets, const SampleWeights& weights, Matrix& gradient);

}  // namespace lockstep
