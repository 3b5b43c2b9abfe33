// An ensemble: members that share weights and stand side by side in the activations of a sample. Training
// takes the mean of their losses; the prediction is the mean of theirs.
#pragma once

#include "lockstep/nn/loss.h"

namespace lockstep {

enum class EnsemblePart {
  kBegin,   ///< makes the members of one sample
  kInside,  ///< takes those that another layer of an ensemble gives
  kEnd,     ///< takes them, too; the last layer of a model text: Model adds the op that joins them
};

/// A layer whose output is one of members, {members, size}.
class EnsembleLayer {
 public:
  virtual ~EnsembleLayer() = default;
  virtual EnsemblePart ensemble_part() const = 0;
};

/// As evaluate_weighted, but the mean of the losses of the members. outputs and gradient: n x (members *
/// outputs), those of a sample's members side by side.
double evaluate_members(const Loss& loss, Index members, const ConstMatrix& outputs,
                        const ConstMatrix& targets, const SampleWeights& weights, Matrix& gradient);

}  // namespace lockstep
