#include "lockstep/nn/composite.h"

#include <fmt/format.h>

#include <vector>

#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"

namespace lockstep {

std::span<const PresetEntry> preset_catalog() {
  static const std::vector<PresetEntry> kEntries = [] {
    std::vector<PresetEntry> entries;
    for (const TextEntry& entry : embedded_entries("texts/presets.txt")) {
      entries.push_back({.name = entry.name, .help = entry.get("help"), .text = entry.get("layers")});
    }
    return entries;
  }();
  return kEntries;
}

std::string preset_layers(std::string_view name, Index outputs) {
  return fmt::format(fmt::runtime(find_entry(preset_catalog(), "preset", name).text),
                     fmt::arg("outputs", outputs));
}

std::string model_text(const ModelOptions& options) {
  return options.preset.empty() ? options.layers : preset_layers(options.preset, options.outputs);
}

}  // namespace lockstep
