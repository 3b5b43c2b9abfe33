// Texts that a model continues: each token is drawn from what it gives for each token of its vocabulary. What
// layers keep of the positions before makes a token cost one position.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/base/types.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/next_position.h"

namespace lockstep {

/// Which tokens may be drawn, and how likely.
struct DrawOptions {
  double temperature =
      1;             ///< divides the outputs; 0: the token with the largest output, the first of several
  Index top_k = 0;   ///< only so many of the most likely; 0: all
  double top_p = 1;  ///< only the fewest of the most likely whose probabilities add up to this much
                     ///< (nucleus sampling, Holtzman et al. 2020), after top_k
  std::uint64_t seed = 1;
  Index tokens = 0;  ///< the first outputs, so many, stand for tokens, and others are never drawn; 0: all do
};

/// Draws tokens. A draw depends on the options, the text's number and the position alone: texts that are
/// drawn side by side are those that are drawn one by one.
class TokenDrawer {
 public:
  explicit TokenDrawer(const DrawOptions& options) : options_(options) {}

  /// `outputs`: of each token, before softmax, and behind them those that stand for none. Errors: DataError
  /// if that of a token is not a finite number.
  Index draw(std::span<const Scalar> outputs, Index text, Index position);

 private:
  // Leaves the tokens that may be drawn in candidates_, the most likely first, and their shares, which add up
  // to the sum that this gives.
  double choose_candidates(std::span<const Scalar> outputs);

  DrawOptions options_;
  std::vector<Index> candidates_;
  std::vector<double> shares_;
};

/// Texts that continue one prompt, side by side; each is what it would be alone. A model has as many
/// positions as its window: where a text has filled it, its second half is taken again as a beginning.
class TextGenerator {
 public:
  /// `model` outlives it. `prompt`: numbers of tokens. Errors: ConfigError for a model that cannot go on from
  /// one position to the next or has fewer outputs than tokens, and for a prompt that is empty or longer than
  /// its positions.
  TextGenerator(const Model& model, const DrawOptions& options, std::vector<Index> prompt, Index texts);

  /// The texts are the prompt again, which the model with these values goes on with. They stay where they are
  /// until the next start.
  void start(const ModelValues& values);
  /// Adds the next token to each text. Errors: DataError if the model gives what is no finite number.
  void add_token();
  /// The prompt, and what was added to it.
  const std::vector<Index>& text(Index i) const { return at(texts_, i); }

 private:
  void take(Range positions);

  ThreadTeam team_{1};
  KernelWeights weights_;
  ModelValues values_;
  Index window_;
  TokenDrawer drawer_;
  NextPosition next_;
  std::vector<Index> prompt_;
  std::vector<std::vector<Index>> texts_;
  std::vector<Scalar> ids_;
  std::optional<ConstMatrix> outputs_;  // behind the last position
};

}  // namespace lockstep
