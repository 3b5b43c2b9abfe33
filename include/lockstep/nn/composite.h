// A composite: several layers written as one term, such as residual(...). It only adds ops to the graph, so
// whatever runs or exports a model sees plain layers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/terms.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

class GraphBuilder {
 public:
  virtual ~GraphBuilder() = default;
  /// Shape of what an op gives, or of the model's input.
  virtual const Shape& shape(Index op) const = 0;
  /// Adds a chain of terms behind `input`, named "path.0", "path.1", ...; gives its last op.
  virtual Index add_chain(std::span<const Term> chain, Index input, const std::string& path) = 0;
  /// Adds one layer; `text` is for messages.
  virtual Index add_layer(std::unique_ptr<Layer> layer, std::vector<Index> inputs, const std::string& path,
                          const std::string& text) = 0;
  /// An error that names the term at `path`.
  virtual ConfigError error(const std::string& path, const std::string& text,
                            const std::string& problem) const = 0;
  /// Makes a layer from its text and adds it.
  virtual Index add_layer(const std::string& text, Index input, const std::string& path) = 0;
};

struct CompositeEntry {
  std::string name;
  std::string signature;  ///< "residual(layers)"
  std::string help;       ///< one sentence, with its source
  std::string example;    ///< a text for the catalog tests
  Shape example_input;    ///< shape of an input that the example takes
  /// Adds the ops of `term` behind `input`; gives the last. Errors: ConfigError.
  std::function<Index(GraphBuilder&, const Term& term, Index input, const std::string& path)> build;
};

/// Every composite there is. To add one: src/README.md.
std::span<const CompositeEntry> composite_catalog();

}  // namespace lockstep
