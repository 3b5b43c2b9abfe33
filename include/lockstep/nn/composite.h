// A composite: several layers written as one term, such as residual(...) or transformer(4, 4). It only adds
// ops to the graph, so whatever runs or exports a model sees plain layers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/terms.h"
#include "lockstep/nn/layer.h"

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

}  // namespace lockstep
