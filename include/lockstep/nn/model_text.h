// The text of a model, "dense(256) relu dense(10)", as a list of layer specifications.
//
//   model    = layer { layer }                 layers are separated by blanks or line ends
//   layer    = name [ "(" [ argument { "," argument } ] ")" ]
//   argument = [ key "=" ] value               value: a number or a word
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

struct LayerArgument {
  std::string key;  ///< "" for a positional argument
  std::string value;
};

struct LayerSpec {
  std::string option;  ///< config key of the text, for messages
  std::string name;
  std::vector<LayerArgument> arguments;
  std::string text;  ///< as the user wrote it, for messages
};

/// The config option that holds a text of this grammar, for messages.
struct TextOption {
  std::string_view key = "model.layers";
  std::string_view name = "a layer name";
  std::string_view example = "dense(64) relu dense(10)";
};

/// Errors: ConfigError naming the option, the column and what was expected there.
std::vector<LayerSpec> parse_model_text(std::string_view text, const TextOption& option = {});

/// Reads the arguments of one layer (or of what else is written like one) and refuses what nobody asked for.
class LayerArguments {
 public:
  explicit LayerArguments(const LayerSpec& spec) : spec_(&spec), used_(spec.arguments.size(), false) {}

  /// A required whole number of at least `least`, by key or as the next positional argument.
  Index take_index(std::string_view key, Index least);
  /// An optional number, by key or as the next positional argument.
  double take_number(std::string_view key, double fallback);
  /// An optional word, by key only.
  std::string take_word(std::string_view key, std::string_view fallback);
  /// Errors: ConfigError if an argument is left over.
  void finish() const;

 private:
  const LayerArgument* take(std::string_view key, bool positional);
  [[noreturn]] void fail(const std::string& problem) const;

  const LayerSpec* spec_;
  std::vector<bool> used_;
};

}  // namespace lockstep
