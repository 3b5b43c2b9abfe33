#include "lockstep/nn/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

Range group_of(Index replica, Index size, Index replicas) {
  const Index begin = replica / size * size;
  return {begin, std::min(begin + size, replicas)};
}

}  // namespace

Range BatchNormMode::normalised_with(Index replica, Index replicas) const {
  switch (kind) {
    case Kind::kLocal:
    case Kind::kAveraged:
      return {replica, replica + 1};
    case Kind::kSync:
      return {0, replicas};
    case Kind::kGroup:
      return group_of(replica, group, replicas);
  }
  return {};
}

Range BatchNormMode::moments_with(Index replica, Index replicas) const {
  if (kind == Kind::kAveraged) return {0, replicas};
  return normalised_with(replica, replicas);
}

BatchNormMode parse_batch_norm_mode(std::string_view text) {
  using Kind = BatchNormMode::Kind;
  if (text == "local") return {};
  if (text == "averaged") return {.kind = Kind::kAveraged};
  if (text == "sync") return {.kind = Kind::kSync};
  constexpr std::string_view kGroup = "group(";
  if (text.starts_with(kGroup) && text.ends_with(")")) {
    const std::string_view digits = text.substr(kGroup.size(), text.size() - kGroup.size() - 1);
    const std::optional<Index> group = number_in<Index>(digits);
    if (group && *group >= 1) return {.kind = Kind::kGroup, .group = *group};
  }
  throw ConfigError("batch norm expects local, averaged, sync or group(G) with G replicas, found {}",
                    in_quotes(text));
}

std::string to_string(const BatchNormMode& mode) {
  switch (mode.kind) {
    case BatchNormMode::Kind::kLocal:
      return "local";
    case BatchNormMode::Kind::kAveraged:
      return "averaged";
    case BatchNormMode::Kind::kSync:
      return "sync";
    case BatchNormMode::Kind::kGroup:
      return fmt::format("group({})", mode.group);
  }
  return {};
}

// One line for each file in layers/.
LayerEntry dense_entry();
LayerEntry embedding_entry();
LayerEntry batch_norm_entry();
LayerEntry dropout_entry();
LayerEntry swiglu_entry();
std::vector<LayerEntry> convolution_layers();
std::vector<LayerEntry> pooling_layers();
std::vector<LayerEntry> norm_layers();
std::vector<LayerEntry> feature_layers();
std::vector<LayerEntry> tabm_layers();
std::vector<LayerEntry> reshaping_layers();
std::vector<LayerEntry> recurrent_layers();
std::vector<LayerEntry> attention_layers();
std::vector<LayerEntry> elementwise_layers();

// The order in which help has them; functions of single scalars come last.
constexpr auto kLayerOrder = std::to_array<std::string_view>(
    {"dense",      "conv2d",     "embedding", "periodic",       "scale",          "tabm",
     "tabm_dense", "tabm_heads", "maxpool",   "avgpool",        "global_avgpool", "batch_norm",
     "layer_norm", "dropout",    "flatten",   "slice",          "as_sequence",    "conv1d",
     "maxpool1d",  "avgpool1d",  "last",      "mean_over_time", "max_over_time",  "lstm",
     "gru",        "attend",     "positions", "rms_norm",       "swiglu"});

std::span<const LayerEntry> layer_catalog() {
  static const std::vector<LayerEntry> kEntries = in_order<LayerEntry>(
      kLayerOrder, {{dense_entry(), embedding_entry(), batch_norm_entry(), dropout_entry(), swiglu_entry()},
                    convolution_layers(),
                    pooling_layers(),
                    norm_layers(),
                    feature_layers(),
                    tabm_layers(),
                    reshaping_layers(),
                    recurrent_layers(),
                    attention_layers(),
                    elementwise_layers()});
  return kEntries;
}

}  // namespace lockstep
