#include "lockstep/nn/row_blocks.h"

#include <algorithm>

namespace lockstep {
namespace {

// A quarter of the second-level cache of today's servers: what was fastest there. And as much of it for
// weights as leaves room for samples.
constexpr Index kBlockBytes = Index{1} << 19;
constexpr Index kWeightBytes = kBlockBytes / 4;

enum class Place { kAnywhere, kFirst, kAlone };

Index sample_bytes(const ModelNode& node) {
  Index scalars = node.out.size();
  for (const Shape& in : node.in) scalars += in.size();
  return scalars * Index{sizeof(Scalar)};
}

// Pieces of the order of nodes, cut by place(node).
template <class PlaceOf>
std::vector<NodeRun> cut(const Model& model, const PlaceOf& place) {
  std::vector<NodeRun> runs;
  bool open = false;
  Index bytes = 0;
  for (Index i = 0; i < std::ssize(model.nodes()); ++i) {
    const ModelNode& node = model.node(i);
    const Place here = place(node);
    if (!open || here != Place::kAnywhere) {
      runs.push_back({.nodes = {i, i}});
      bytes = 0;
    }
    open = here != Place::kAlone;
    bytes = std::max(bytes, sample_bytes(node));
    runs.back().nodes.end = i + 1;
    runs.back().rows = open ? std::max<Index>(kBlockBytes / bytes, 1) : 0;
  }
  return runs;
}

}  // namespace

std::vector<NodeRun> forward_runs(const Model& model) {
  return cut(model, [](const ModelNode& node) {
    if (node.shares || node.params.size() * Index{sizeof(Scalar)} > kWeightBytes) return Place::kAlone;
    return node.layer->statistics() != nullptr ? Place::kFirst : Place::kAnywhere;
  });
}

std::vector<NodeRun> backward_runs(const Model& model) {
  return cut(model, [](const ModelNode& node) {
    const bool alone = !node.params.empty() || node.shares || node.layer->statistics() != nullptr;
    return alone ? Place::kAlone : Place::kAnywhere;
  });
}

}  // namespace lockstep
