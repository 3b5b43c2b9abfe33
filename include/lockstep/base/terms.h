// Texts such as "dense(256) relu dense(10)" or "crop(4) flip" as a list of terms: names with arguments.
//
//   terms    = term { term }                   separated by blanks or line ends
//   term     = name [ "(" [ argument { "," argument } ] ")" ]
//            | composite "(" terms { "|" terms } ")"
//   argument = [ key "=" ] value               value: a number, a word, a word with a number ("group(4)"),
//                                              or any text in quotes, single or double
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

struct TermArgument {
  std::string key;  ///< "" for a positional argument
  std::string value;
};

struct Term {
  std::string option;  ///< config key of the text, for messages
  std::string name;
  std::vector<TermArgument> arguments;
  std::vector<std::vector<Term>> chains;  ///< the chains of terms inside a composite
  std::string text;                       ///< the term as the user wrote it, for messages
};

/// The config option that holds a text of this grammar.
struct TermsOption {
  std::string_view key = "model.layers";  ///< used in messages, like the next two
  std::string_view name = "a layer name";
  std::string_view example = "dense(64) relu dense(10)";
  std::vector<std::string> composites = {};  ///< names whose parentheses hold terms, not arguments
};

/// Errors: ConfigError naming the option, the column and what was expected there.
std::vector<Term> parse_terms(std::string_view text, const TermsOption& option = {});

/// Reads the arguments of one term and refuses what nobody asked for. Its errors (ConfigError) name what is
/// wrong with an argument; whoever knows which term of which option that is, adds it.
class TermArguments {
 public:
  explicit TermArguments(const Term& term) : term_(&term), used_(term.arguments.size(), false) {}

  /// A whole number of at least `least`, by key or as the next positional argument; required if there is no
  /// fallback.
  Index take_index(std::string_view key, Index least, std::optional<Index> fallback = std::nullopt);
  /// An optional number, by key or as the next positional argument.
  double take_number(std::string_view key, double fallback);
  /// Whether there is another positional argument.
  bool has_next() const;
  /// The next positional argument, as it is; required.
  std::string take_next(std::string_view name);
  /// An optional word, by key only.
  std::string take_word(std::string_view key, std::string_view fallback);
  /// An optional true or false, by key only.
  bool take_flag(std::string_view key, bool fallback);
  /// Errors: ConfigError if an argument is left over.
  void finish() const;

 private:
  const TermArgument* take(std::string_view key, bool positional);
  [[noreturn]] static void fail(const std::string& problem);

  const Term* term_;
  std::vector<bool> used_;
};

}  // namespace lockstep
