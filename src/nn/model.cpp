#include "lockstep/nn/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/preset.h"
#include "model_builder.h"

namespace lockstep {

Model::Model(const ModelOptions& options, const Shape& input) : input_(input), precision_(options.precision) {
  ModelBuilder builder(options, input);
  builder.add_chain(parse_terms(model_text(options), {.composites = catalog_names(composite_catalog())}),
                    kModelInput, "");
  nodes_ = builder.take_nodes();
  layout_ = builder.weights();
  state_layout_ = builder.state();
  if (layout_.params.empty()) throw ConfigError("model.layers has no weights to train; add a dense layer");
  stored_layout_ = layout_;
  for (const ParamInfo& param : state_layout_.params) append(stored_layout_, param);
}

std::vector<Index> Model::meetings(Index replicas) const {
  std::vector<Index> meet;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const BatchStatistics* statistics = nodes_[i].layer->statistics();
    if (statistics != nullptr && statistics->mode().normalised_with(0, replicas).size() > 1) {
      meet.push_back(static_cast<Index>(i));
    }
  }
  return meet;
}

Index Model::training_flops() const {
  Index total = 0;
  for (const ModelNode& node : nodes_) total += 3 * node.layer->flops();
  return total;
}

Index Model::activation_bytes() const {
  Index scalars = 0;
  for (const ModelNode& node : nodes_) {
    if (!node.layer->only_reshapes()) scalars += 2 * node.out.size() + node.layer->cache_size();
  }
  return scalars * Index{sizeof(Scalar)};
}

ModelValues stored_values(const Model& model, std::span<const Scalar> stored) {
  const Index weights = model.layout().size;
  return {.weights = part(stored, {0, weights}),
          .state = part(stored, {weights, weights + model.state_layout().size})};
}

double Operation::attribute(std::string_view key) const {
  return std::ranges::find(attributes, key, &std::pair<std::string, double>::first)->second;
}

}  // namespace lockstep
