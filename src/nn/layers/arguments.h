// Arguments that several layers have.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// init=WORD. Nothing if it is not given: the layer starts as model.init has it. Errors: ConfigError for an
/// unknown word.
inline std::optional<Initialiser> take_initialiser(TermArguments& arguments) {
  const std::string word = arguments.take_word("init", "");
  if (word.empty()) return std::nullopt;
  return parse_initialiser(word);
}

/// Whether split=rows is there, of a layer whose weight can lie in fixed blocks (split_layer.h). Errors:
/// ConfigError for another word than rows.
inline bool takes_split(TermArguments& arguments) {
  const std::string split = arguments.take_word("split", "");
  if (split.empty() || split == "rows") return !split.empty();
  throw ConfigError(fmt::format("'split' must be rows, found {}", in_quotes(split)));
}

}  // namespace lockstep
