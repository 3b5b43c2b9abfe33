#include "lockstep/nn/activations.h"

#include <algorithm>

#include "lockstep/nn/row_blocks.h"

namespace lockstep {
namespace {

// Who uses the memory of an output: from the first of these nodes to the last.
struct Users {
  Range nodes;
  bool reads_back = false;  // one of them reads the output in the backward pass
};

// By the node that owns the memory. The model's output is used by a node after the last: who asked for it.
std::vector<Users> users_of(const Model& model) {
  const auto& nodes = model.nodes();
  std::vector<Users> users(nodes.size());
  const auto note = [&](Index node, Index user, bool reads_back) {
    const Index owner =
        node == kModelInput ? kModelInput : model.output_owners()[static_cast<std::size_t>(node)];
    if (owner == kModelInput) return;
    Users& all = users[static_cast<std::size_t>(owner)];
    all.nodes = {all.nodes.empty() ? user : all.nodes.begin, user + 1};
    all.reads_back |= reads_back;
  };
  for (Index i = 0; i < std::ssize(nodes); ++i) {
    const ModelNode& node = model.node(i);
    if (node.layer->only_reshapes()) continue;
    for (const Index input : node.inputs) note(input, i, node.layer->reads_input());
    note(i, i, node.layer->reads_output());
  }
  note(std::ssize(nodes) - 1, std::ssize(nodes), false);
  return users;
}

// How many samples at a time these nodes see. The runs are in the order of their nodes.
Index samples_at_once(const std::vector<NodeRun>& runs, Range nodes, Index batch) {
  const auto run = std::ranges::partition_point(
      runs, [&](const NodeRun& before) { return before.nodes.end <= nodes.begin; });
  return run != runs.end() && run->nodes.contains(nodes) ? run->rows_of(batch) : batch;
}

}  // namespace

std::vector<RetainedSamples> retained_samples(const Model& model, Index batch, ActivationRetention kept) {
  const std::vector<NodeRun> forward = forward_runs(model);
  const std::vector<NodeRun> backward = backward_runs(model);
  const std::vector<Users> users = users_of(model);
  std::vector<RetainedSamples> samples(users.size());
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (!model.owns_output(static_cast<Index>(i)) || model.nodes()[i].layer->only_reshapes()) continue;
    if (kept == ActivationRetention::kAll || kept == ActivationRetention::kOutputs) {
      samples[i] = {batch, kept == ActivationRetention::kAll ? batch : 0};
    } else if (kept == ActivationRetention::kForEvaluation) {
      samples[i].output = samples_at_once(forward, users[i].nodes, batch);
    } else {
      samples[i] = {users[i].reads_back ? batch : samples_at_once(forward, users[i].nodes, batch),
                    samples_at_once(backward, users[i].nodes, batch)};
    }
  }
  return samples;
}

Index activation_bytes(const Model& model, Index batch, ActivationRetention kept) {
  const std::vector<RetainedSamples> samples = retained_samples(model, batch, kept);
  Index scalars = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const ModelNode& node = model.nodes()[i];
    scalars += (samples[i].output + samples[i].gradient) * node.out.size();
    if (!node.layer->only_reshapes()) scalars += batch * node.layer->cache_size();
  }
  return scalars * Index{sizeof(Scalar)};
}

}  // namespace lockstep
