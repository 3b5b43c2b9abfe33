// Well-known models by name, as texts for model.layers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/types.h"
#include "lockstep/nn/options.h"

namespace lockstep {

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
