#include "lockstep/distributed/optimizer_memory.h"

#include <algorithm>
#include <array>

#include "lockstep/distributed/whole_tensors.h"

namespace lockstep {
namespace {

constexpr Index kScalarBytes = sizeof(Scalar);

}  // namespace

OptimizerMemory::OptimizerMemory(const Optimizer& optimizer, const Layout& layout)
    : slots_(optimizer.slots()) {
  if (!optimizer.needs_whole_tensors()) return;
  grid_.emplace(layout, Grain::kTensor);
  for (std::size_t param = 0; param < layout.params.size(); ++param) {
    const TensorInfo info = tensor_info(layout, param);
    Tensor tensor{.range = layout.params[param].range, .scratch = optimizer.scratch_size(info)};
    for (int slot = 0; slot < optimizer.slots(); ++slot) {
      tensor.state += optimizer.slot_size(slot, info);
      tensor.held += round_up(optimizer.slot_size(slot, info), kAlignment);
    }
    tensors_.push_back(tensor);
  }
}

Index OptimizerMemory::bytes(std::span<const Range> owned, Index threads) const {
  Index numbers = 0;
  Index scratch = 0;
  for (const Range range : owned) {
    if (!grid_) numbers += slots_ * range.size();
    for (const Tensor& tensor : tensors_) {
      if (!range.contains(tensor.range.begin)) continue;
      numbers += tensor.held;
      scratch = std::max(scratch, tensor.scratch);
    }
  }
  return (numbers + threads * scratch) * kScalarBytes;
}

Index OptimizerMemory::share_bytes(Index size, Index owner, Index owners, Index threads) const {
  if (!grid_) return slots_ * size * kScalarBytes / owners;
  const std::array own{at(owner_slices(*grid_, {0, size}, owners), owner)};
  return bytes(own, threads);
}

Index OptimizerMemory::saved_bytes(Index parameters) const {
  if (!grid_) return slots_ * parameters * kScalarBytes;
  Index numbers = 0;
  for (const Tensor& tensor : tensors_) numbers += tensor.state;
  return numbers * kScalarBytes;
}

}  // namespace lockstep
