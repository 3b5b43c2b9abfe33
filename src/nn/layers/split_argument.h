// The argument split=rows of layers whose weight can lie in fixed blocks (split_layer.h).
#pragma once

#include <fmt/format.h>

#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

/// Whether it is there. Errors: ConfigError for another word than rows.
inline bool takes_split(TermArguments& arguments) {
  const std::string split = arguments.take_word("split", "");
  if (split.empty() || split == "rows") return !split.empty();
  throw ConfigError(fmt::format("'split' must be rows, found {}", in_quotes(split)));
}

}  // namespace lockstep
