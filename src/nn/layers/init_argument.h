// init=WORD, an argument of layers with weights.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/terms.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// Nothing if it is not given: the layer starts as model.init has it. Errors: ConfigError for an unknown
/// word.
inline std::optional<Initialiser> take_initialiser(TermArguments& arguments) {
  const std::string word = arguments.take_word("init", "");
  if (word.empty()) return std::nullopt;
  return parse_initialiser(word);
}

}  // namespace lockstep
