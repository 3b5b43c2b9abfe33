// A composite: several layers written as one term, such as residual(...) or transformer(4, 4). It only adds
// ops to the graph, so whatever runs or exports a model sees plain layers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/terms.h"
#include "lockstep/base/types.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/options.h"

namespace lockstep {

class ModelBuilder;

struct CompositeEntry {
  std::string name;
  std::string signature;     ///< "residual(layers)"
  std::string help;          ///< one sentence, with its source
  std::string example;       ///< a text for the catalog tests
  Shape example_input;       ///< shape of an input that the example takes
  bool takes_layers = true;  ///< its parentheses hold layers; else arguments
  /// Adds the ops of `term` behind `input`; gives the last. Errors: ConfigError.
  std::function<Index(ModelBuilder&, const Term& term, Index input, const std::string& path)> build;
};

/// Every composite there is. To add one: src/README.md.
std::span<const CompositeEntry> composite_catalog();

/// The terms of a text for model.layers. Errors: ConfigError.
std::vector<Term> parse_layers(std::string_view text);

// Well-known models by name, as texts for model.layers.

struct PresetEntry {
  std::string name;
  std::string help;  ///< one sentence, with its source
  std::string text;  ///< text for model.layers, with "{outputs}" for the number of outputs
};

/// Every preset there is. To add one: src/README.md.
std::span<const PresetEntry> preset_catalog();

/// The text of the preset `name` with so many outputs. Errors: ConfigError if there is none.
std::string preset_layers(std::string_view name, Index outputs);
/// The text that the options mean: model.layers, or that of the preset.
std::string model_text(const ModelOptions& options);

}  // namespace lockstep
