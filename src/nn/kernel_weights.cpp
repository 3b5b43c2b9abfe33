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
  std::unordered_set<Index> begins;
  for (const ModelOp& op : model.ops()) {
    const Range tensor = op.layer->weight_use().rounded;
    // Layers that share a weight name the same range.
    if (tensor.empty() || !begins.insert(tensor.begin).second) continue;
    rounded_tensors_.push_back(tensor);
  }
  if (!rounded_tensors_.empty()) rounded_ = AlignedBuffer<Bf16>(model.layout().size);
}

ModelValues KernelWeights::prepare(const ModelValues& values, ThreadTeam& team) {
  ModelValues prepared = values;
  prepared.version = next_version();
  if (rounded_tensors_.empty()) return prepared;
  team.run([&](int thread) {
    for (const Range& tensor : rounded_tensors_) {
      const Range mine = split_evenly(tensor.size(), team.size(), thread, kAlignment);
      const Range range{tensor.begin + mine.begin, tensor.begin + mine.end};
      round_to_bf16(part(values.weights, range), part(rounded_.span(), range));
    }
  });
  prepared.rounded = std::as_const(rounded_).span();
  return prepared;
}

}  // namespace lockstep
