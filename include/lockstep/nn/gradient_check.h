// Whether the gradient of an op has a part that no sound training has: asked by who makes it, where much of
// it, or of what it is made of, is still in the cache.
#pragma once

#include <optional>
#include <span>

#include "lockstep/math/kernels.h"
#include "lockstep/nn/model.h"

namespace lockstep {

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

}  // namespace lockstep
