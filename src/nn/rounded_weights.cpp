#include "lockstep/nn/rounded_weights.h"

#include <algorithm>
#include <utility>

namespace lockstep {

RoundedWeights::RoundedWeights(const Model& model) {
  for (const ModelNode& node : model.nodes()) {
    const Range tensor = node.layer->rounded_tensor();
    // Layers that share a weight name the same range.
    if (!tensor.empty() && std::ranges::find(tensors_, tensor) == tensors_.end()) tensors_.push_back(tensor);
  }
  if (!tensors_.empty()) arena_ = AlignedBuffer<Bf16>(model.layout().size);
}

std::span<const Bf16> RoundedWeights::round(std::span<const Scalar> weights, ThreadTeam& team) {
  if (tensors_.empty()) return {};
  team.run([&](int thread) {
    for (const Range& tensor : tensors_) {
      const Range mine = split_evenly(tensor.size(), team.size(), thread, kAlignment);
      const Range place{tensor.begin + mine.begin, tensor.begin + mine.end};
      round_to_bf16(part(weights, place), part(arena_.span(), place));
    }
  });
  return std::as_const(arena_).span();
}

}  // namespace lockstep
