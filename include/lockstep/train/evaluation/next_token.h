// The token that goes on with a text, drawn from what a model gives for each token of its vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Which tokens may be drawn, and how likely.
struct DrawOptions {
  double temperature =
      1;             ///< divides the outputs; 0: the token with the largest output, the first of several
  Index top_k = 0;   ///< only so many of the most likely; 0: all
  double top_p = 1;  ///< only the fewest of the most likely whose probabilities add up to this much
                     ///< (nucleus sampling, Holtzman et al. 2020), after top_k
  std::uint64_t seed = 1;
};

/// Draws tokens. A draw depends on the options, the text's number and the position alone: texts that are
/// drawn side by side are those that are drawn one by one.
class TokenDrawer {
 public:
  explicit TokenDrawer(const DrawOptions& options) : options_(options) {}

  /// `outputs`: of each token, before softmax. Errors: DataError if one is not a finite number.
  Index draw(std::span<const Scalar> outputs, Index text, Index position);

 private:
  // Leaves the tokens that may be drawn in candidates_, the most likely first, and their shares, which add up
  // to the sum that this gives.
  double choose_candidates(std::span<const Scalar> outputs);

  DrawOptions options_;
  std::vector<Index> candidates_;
  std::vector<double> shares_;
};

}  // namespace lockstep
