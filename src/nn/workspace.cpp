#include "lockstep/nn/workspace.h"

#include <cassert>

namespace lockstep {
namespace {

// The last layer at or before `layer` that has memory of its own; -1 for the input.
std::ptrdiff_t owner_of(const std::vector<ModelLayer>& layers, std::ptrdiff_t layer) {
  while (layer >= 0 && layers[static_cast<std::size_t>(layer)].layer->only_reshapes()) --layer;
  return layer;
}

}  // namespace

Workspace::Workspace(const Model& model, Index max_rows, bool for_training) : model_(model) {
  for (const ModelLayer& layer : model.layers()) {
    const Index size = layer.layer->only_reshapes() ? 0 : max_rows * layer.out.size();
    outputs_.emplace_back(size);
    gradients_.emplace_back(for_training ? size : 0);
  }
}

ConstMatrix Workspace::output(std::size_t layer, const ConstMatrix& x) const {
  const std::ptrdiff_t owner = owner_of(model_.layers(), static_cast<std::ptrdiff_t>(layer));
  const Index columns = model_.layers()[layer].out.size();
  return {owner < 0 ? x.data() : outputs_[static_cast<std::size_t>(owner)].data(), rows_, columns};
}

ConstMatrix Workspace::forward(std::span<const Scalar> weights, const ConstMatrix& x) {
  rows_ = x.rows();
  const auto& layers = model_.layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].layer->only_reshapes()) continue;
    const ConstMatrix in = i == 0 ? x : output(i - 1, x);
    layers[i].layer->forward({.x = in,
                              .params = part(weights, layers[i].params),
                              .y = Matrix(outputs_[i].data(), rows_, layers[i].out.size())});
  }
  return output(layers.size() - 1, x);
}

Matrix Workspace::output_gradient() {
  const auto last = static_cast<std::ptrdiff_t>(model_.layers().size()) - 1;
  const std::ptrdiff_t owner = owner_of(model_.layers(), last);
  assert(owner >= 0);
  return {gradients_[static_cast<std::size_t>(owner)].data(), rows_, model_.output().size()};
}

void Workspace::backward(std::span<const Scalar> weights, const ConstMatrix& x, std::span<Scalar> gradient,
                         Write write, const LayerDone& done) {
  const auto& layers = model_.layers();
  for (std::size_t i = layers.size(); i-- > 0;) {
    const ModelLayer& layer = layers[i];
    if (layer.layer->only_reshapes()) continue;
    const std::ptrdiff_t below = owner_of(layers, static_cast<std::ptrdiff_t>(i) - 1);
    Scalar* dx_memory = below < 0 ? nullptr : gradients_[static_cast<std::size_t>(below)].data();
    Matrix dx(dx_memory, rows_, layer.in.size());
    layer.layer->backward({.x = i == 0 ? x : output(i - 1, x),
                           .y = output(i, x),
                           .dy = ConstMatrix(gradients_[i].data(), rows_, layer.out.size()),
                           .params = part(weights, layer.params),
                           .dx = below < 0 ? nullptr : &dx,
                           .dparams = part(gradient, layer.params),
                           .write = write});
    if (done && !layer.params.empty()) done(static_cast<Index>(i));
  }
}

std::optional<Index> Workspace::first_bad_layer() const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Index used = outputs_[i].size() == 0 ? 0 : rows_ * model_.layers()[i].out.size();
    if (!all_finite(part(outputs_[i].span(), {0, used}))) return static_cast<Index>(i);
  }
  return std::nullopt;
}

}  // namespace lockstep
