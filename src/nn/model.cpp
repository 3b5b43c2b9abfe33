#include "lockstep/nn/model.h"

#include <fmt/format.h>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

// Appends the tensors of one layer to the layout.
class LayoutBuilder final : public ParamDeclarer {
 public:
  LayoutBuilder(Layout& layout, Initialiser initialiser, Index layer)
      : layout_(layout), initialiser_(initialiser), layer_(layer), start_(layout.size) {}

  Initialiser default_initialiser() const override { return initialiser_; }

  Range declare(ParamSpec spec) override {
    const Range range{layout_.size, layout_.size + spec.shape.size()};
    layout_.params.push_back({.name = fmt::format("{}.{}", layer_, spec.name),
                              .shape = std::move(spec.shape),
                              .range = range,
                              .decays = spec.decays,
                              .layer = layer_,
                              .initialiser = spec.initialiser,
                              .fan_in = spec.fan_in,
                              .fan_out = spec.fan_out});
    layout_.size = round_up(range.end, kAlignment);
    if (layout_.size > kMostScalars) {
      throw ConfigError(fmt::format("the model has more than {} weights", kMostScalars));
    }
    return {range.begin - start_, range.end - start_};
  }

  Range declared() const { return {start_, layout_.size}; }

 private:
  Layout& layout_;
  Initialiser initialiser_;
  Index layer_;
  Index start_;
};

std::unique_ptr<Layer> make_layer(const LayerSpec& spec) {
  const LayerEntry& entry = find_entry(layer_catalog(), "layer", spec.name);
  LayerArguments arguments(spec);
  std::unique_ptr<Layer> layer = entry.make(arguments);
  arguments.finish();
  return layer;
}

}  // namespace

Model::Model(const ModelOptions& options, const Shape& input) {
  const Initialiser initialiser = parse_initialiser(options.init);
  Shape shape = input;
  for (const LayerSpec& spec : parse_model_text(options.layers)) {
    const auto number = static_cast<Index>(layers_.size());
    ModelLayer layer{.title = fmt::format("layer {} '{}'", number, spec.text),
                     .layer = make_layer(spec),
                     .in = shape,
                     .out = {},
                     .params = {}};
    LayoutBuilder builder(layout_, initialiser, number);
    try {
      layer.out = layer.layer->declare(shape, builder);
    } catch (const ConfigError& error) {
      throw ConfigError(
          fmt::format("model.layers: {} on {}: {}", layer.title, to_string(shape), error.what()));
    }
    layer.params = builder.declared();
    shape = layer.out;
    layers_.push_back(std::move(layer));
  }
  if (layout_.params.empty()) throw ConfigError("model.layers has no weights to train; add a dense layer");
}

Index Model::training_flops() const {
  Index total = 0;
  for (const ModelLayer& layer : layers_) total += 3 * layer.layer->flops();
  return total;
}

Index Model::activation_bytes() const {
  Index scalars = 0;
  for (const ModelLayer& layer : layers_) {
    if (!layer.layer->only_reshapes()) scalars += 2 * layer.out.size();
  }
  return scalars * Index{sizeof(Scalar)};
}

}  // namespace lockstep
