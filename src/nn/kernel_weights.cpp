#include "lockstep/nn/kernel_weights.h"

#include <atomic>
#include <unordered_set>
#include <utility>

namespace lockstep {
namespace {

// Versions are unique in this process, so that no two arenas share one.
std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

KernelWeights::KernelWeights(const Model& model) {
  const auto take = [&](bool borrowed, Index size) {
    Rounding rounding;
    std::unordered_set<Index> begins;
    for (const ModelOp& op : model.ops()) {
      const Range tensor = op.layer->weight_use().rounded;
      if (tensor.empty() || (op.tie && op.tie->borrowed) != borrowed) continue;
      // Layers that share a weight name the same range.
      if (begins.insert(tensor.begin).second) rounding.tensors.push_back(tensor);
    }
    if (!rounding.tensors.empty()) rounding.rounded = AlignedBuffer<Bf16>(size);
    return rounding;
  };
  own_ = take(false, model.layout().size);
  borrowed_ = take(true, model.borrowed().size);
}

// Empty if nothing is rounded.
std::span<const Bf16> KernelWeights::Rounding::round(std::span<const Scalar> weights, ThreadTeam& team) {
  if (tensors.empty()) return {};
  team.run([&](int thread) {
    for (const Range& tensor : tensors) {
      const Range mine = split_evenly(tensor.size(), team.size(), thread, kAlignment);
      const Range range{tensor.begin + mine.begin, tensor.begin + mine.end};
      round_to_bf16(part(weights, range), part(rounded.span(), range));
    }
  });
  return rounded.span();
}

ModelValues KernelWeights::prepare(const ModelValues& values, ThreadTeam& team) {
  ModelValues prepared = values;
  prepared.version = next_version();
  prepared.rounded = own_.round(values.weights, team);
  prepared.borrowed_rounded = borrowed_.round(values.borrowed, team);
  return prepared;
}

}  // namespace lockstep
