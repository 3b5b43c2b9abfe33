#include "lockstep/base/random.h"
#include "lockstep/nn/rounded_weights.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/bench.h"
#include "timing.h"

namespace lockstep {
namespace {

void fill(std::span<Scalar> values, std::uint64_t seed) {
  RandomStream random({.seed = seed});
  for (Scalar& value : values) value = random.uniform();
}

bool takes_only_input(const ModelNode& node) {
  return std::ranges::all_of(node.inputs, [](Index input) { return input == kModelInput; });
}

}  // namespace

std::vector<NodeRate> measure_nodes(Communicator& comm, const Model& model, Index rows) {
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  initialise({.layout = &model.stored_layout(), .values = stored.span()}, 1, 0.01);
  AlignedBuffer<Scalar> x(rows * model.input().size());
  fill(x.span(), 1);
  AlignedBuffer<Scalar> gradient(model.layout().size);
  Workspace workspace(model, rows, true);
  const auto nodes = static_cast<Index>(model.nodes().size());
  RoundedWeights rounded(model);
  ThreadTeam alone(1);
  ModelValues values = stored_values(model, stored.span());
  values.rounded = rounded.round(values.weights, alone);
  workspace.begin({.values = values,
                   .x = ConstMatrix(x.data(), rows, model.input().size()),
                   .batch = {.training = true, .seed = 1}});
  workspace.forward({0, nodes});
  Matrix dy = workspace.output_gradient();
  fill({dy.data(), static_cast<std::size_t>(dy.size())}, 2);
  workspace.backward(gradient.span(), Write::kReplace, {});

  std::vector<NodeRate> rates;
  for (Index i = 0; i < nodes; ++i) {
    const ModelNode& node = model.node(i);
    if (node.layer->only_reshapes()) continue;
    const Index flops = rows * node.layer->flops();
    rates.push_back({.title = node.title,
                     .forward_flops = flops,
                     .backward_flops = takes_only_input(node) ? flops : 2 * flops,
                     .forward_seconds = median_seconds(
                         comm,
                         [&] {
                           workspace.forward({i, i + 1});
                         },
                         0.03),
                     .backward_seconds = median_seconds(
                         comm,
                         [&] {
                           workspace.backward({i, i + 1}, gradient.span(), Write::kReplace, {});
                         },
                         0.03)});
  }
  return rates;
}

}  // namespace lockstep
