// Texts as data: one stream of tokens, files one behind the other. A record is a window of data.window
// tokens, a sequence of their numbers, and its targets are the tokens after each of them. The stream is
// encoded once, by rank 0, into a file from which all ranks read; windows are cut when a batch is made.
#pragma once

#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

struct TextSummary {
  Index tokens = 0;
  Index characters = 0;           ///< 0 of ids, whose characters nobody knows
  Index vocabulary = 0;           ///< of the training part
  Index unseen = 0;               ///< tokens held back that the training part does not have
  Index counted = 0;              ///< tokens, from the front, that the models have counted
  Index measured = 0;             ///< tokens held back that they are measured on
  std::vector<double> bits = {};  ///< per character, of ids per token, of orders 0 to 3
};

/// Reads the text of data.train, whose last tokens, `share` of all, are held back. An order-k model counts
/// what follows k tokens, and falls back on k - 1 as Witten and Bell (1991) do; order 0 falls back on equal
/// probabilities. Errors: ConfigError; DataError for a text of less than `fewest` tokens, by default those of
/// the shortest window, the token after it and one that is held back.
TextSummary summarise_text(const DataOptions& data, double share, Index fewest = 10);

}  // namespace lockstep
