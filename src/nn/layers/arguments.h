// Arguments that several layers have.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/errors.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// init=WORD. Nothing if it is not given: the layer starts as model.init has it. Errors: ConfigError for an
/// unknown word.
inline std::optional<Initialiser> take_initialiser(TermArguments& arguments) {
  const std::string word = arguments.take_word("init", "");
  if (word.empty()) return std::nullopt;
  return parse_initialiser(word);
}

/// The number of an argument that may also be a word. Errors: ConfigError if it is below `least` or none;
/// `words` are what else it may be.
inline Index whole_number(std::string_view key, std::string_view text, Index least, std::string_view words) {
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least) return value;
  throw ConfigError(fmt::format("'{}' must be {}a whole number of at least {}, found {}", key,
                                words.empty() ? "" : fmt::format("{} or ", words), least, in_quotes(text)));
}

/// Whether split=rows is there, of a layer whose weight can lie in fixed blocks (split_layer.h). Errors:
/// ConfigError for another word than rows.
inline bool takes_split(TermArguments& arguments) {
  const std::string split = arguments.take_word("split", "");
  if (split.empty() || split == "rows") return !split.empty();
  throw ConfigError(fmt::format("'split' must be rows, found {}", in_quotes(split)));
}

}  // namespace lockstep
