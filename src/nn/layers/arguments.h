// Arguments that several layers have.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/errors.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// init=WORD, or init=normal(0.02), which names its deviation; where it is not given the layer starts as
/// model.init has it. Errors: ConfigError for an unknown word.
class InitArgument {
 public:
  explicit InitArgument(TermArguments& arguments) {
    const std::string word = arguments.take_word("init", "");
    if (word.starts_with("normal(")) {
      initialiser_ = Initialiser::kDeviation;
      deviation_ = positive_number("init=normal(...)", word.substr(7, word.size() - 8));
    } else if (!word.empty()) {
      initialiser_ = parse_initialiser(word);
    }
  }

  bool given() const { return initialiser_.has_value(); }
  ParamSpec of(const ParamDeclarer& params, ParamSpec spec) const {
    spec.initialiser = initialiser_.value_or(params.default_initialiser());
    spec.deviation = deviation_;
    return spec;
  }

 private:
  static double positive_number(std::string_view key, const std::string& text) {
    const std::optional<double> value = number_in<double>(text);
    if (value && *value > 0 && std::isfinite(*value)) return *value;
    throw ConfigError("'{}' must be a number above 0, found {}", key, in_quotes(text));
  }

  std::optional<Initialiser> initialiser_;
  double deviation_ = 0;
};

/// The number of an argument that may also be a word. Errors: ConfigError if it is below `least` or none;
/// `words` are what else it may be.
inline Index whole_number(std::string_view key, std::string_view text, Index least, std::string_view words) {
  const std::optional<Index> value = number_in<Index>(text);
  if (value && *value >= least) return *value;
  throw ConfigError("'{}' must be {}a whole number of at least {}, found {}", key,
                    words.empty() ? "" : fmt::format("{} or ", words), least, in_quotes(text));
}

/// Whether split=rows is there, of a layer whose weight can lie in fixed blocks (split_layer.h). Errors:
/// ConfigError for another word than rows.
inline bool takes_split(TermArguments& arguments) {
  const std::string split = arguments.take_word("split", "");
  if (split.empty() || split == "rows") return !split.empty();
  throw ConfigError("'split' must be rows, found {}", in_quotes(split));
}

}  // namespace lockstep
