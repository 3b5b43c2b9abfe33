#include "lockstep/distributed/whole_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

namespace lockstep {
namespace {

bool is_matrix(const ParamInfo& param) {
  return param.decays && param.shape.dims.size() > 1;
}

bool owns(std::span<const Range> owned, const Range& tensor) {
  const bool has_first =
      std::ranges::any_of(owned, [&](const Range range) { return range.contains(tensor.begin); });
  assert(has_first == std::ranges::any_of(owned, [&](const Range range) { return range.contains(tensor); }) &&
         "an optimizer that needs whole tensors has a part of one");
  return has_first;
}

}  // namespace

TensorInfo tensor_info(const Layout& layout, std::size_t param) {
  using Kind = TensorInfo::Kind;
  const ParamInfo& tensor = layout.params[param];
  if (!is_matrix(tensor)) return {.columns = tensor.range.size()};
  const Index rows = tensor.shape.dims.front();
  const auto last = std::ranges::find_if(layout.params.rbegin(), layout.params.rend(), is_matrix);
  const Kind kind = tensor.looked_up                                   ? Kind::kTable
                    : layout.has_output && tensor.layer == last->layer ? Kind::kOutput
                                                                       : Kind::kMatrix;
  return {.rows = rows, .columns = tensor.range.size() / rows, .kind = kind};
}

WholeTensors::WholeTensors(const Layout& layout, const Optimizer& optimizer, std::span<const Range> owned,
                           ThreadTeam* team)
    : optimizer_(optimizer), team_(team), slots_(static_cast<std::size_t>(optimizer.slots())) {
  for (std::size_t param = 0; param < layout.params.size(); ++param) {
    Tensor tensor{.param = param, .info = tensor_info(layout, param), .range = layout.params[param].range};
    const bool mine = owns(owned, tensor.range);
    const bool starts_chunk = std::ranges::find(layout.chunk_begins, param) != layout.chunk_begins.end();
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      const Index size = optimizer.slot_size(static_cast<int>(slot), tensor.info);
      tensor.in_array[slot] = {array_[slot], array_[slot] + size};
      if (starts_chunk) chunk_offsets_[slot].push_back(array_[slot]);
      array_[slot] += round_up(size, kAlignment);
      if (!mine) continue;
      tensor.held[slot] = {held_[slot], held_[slot] + size};
      held_[slot] += round_up(size, kAlignment);
    }
    if (mine) tensors_.push_back(tensor);
  }
  divide(team == nullptr ? 1 : team->size());
}

// The largest first, each to the thread that has least.
void WholeTensors::divide(Index threads) {
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t tensor) { return tensors_[tensor].range.size(); });
  by_thread_.resize(static_cast<std::size_t>(threads));
  std::vector<Index> loads(by_thread_.size());
  for (const std::size_t tensor : order) {
    const auto least = std::ranges::min_element(loads) - loads.begin();
    at(by_thread_, least).push_back(tensor);
    at(loads, least) += tensors_[tensor].range.size();
  }
}

void WholeTensors::step(std::span<Scalar> weights, std::span<Scalar> gradient,
                        std::span<AlignedBuffer<Scalar>> slots,
                        const std::function<std::optional<StepInfo>(std::size_t param)>& info) {
  for (std::size_t thread = scratch_.size(); thread < by_thread_.size(); ++thread) {
    Index most = 0;
    for (const std::size_t tensor : by_thread_[thread]) {
      most = std::max(most, optimizer_.scratch_size(tensors_[tensor].info));
    }
    scratch_.emplace_back(most);
  }
  const auto take = [&](int thread) {
    for (const std::size_t number : at(by_thread_, thread)) {
      const Tensor& tensor = tensors_[number];
      const std::optional<StepInfo> own = info(tensor.param);
      if (own) step(tensor, weights, gradient, slots, at(scratch_, thread).span(), *own);
    }
  };
  if (by_thread_.size() > 1) {
    team_->run(take);
  } else {
    take(0);
  }
}

void WholeTensors::step(const Tensor& tensor, std::span<Scalar> weights, std::span<Scalar> gradient,
                        std::span<AlignedBuffer<Scalar>> slots, std::span<Scalar> scratch,
                        const StepInfo& info) const {
  std::array<std::span<Scalar>, kMaxSlots> own;
  for (std::size_t slot = 0; slot < slots_; ++slot) own[slot] = part(slots[slot].span(), tensor.held[slot]);
  optimizer_.update({.weights = part(weights, tensor.range),
                     .gradient = part(gradient, tensor.range),
                     .slots = std::span(own).first(slots_),
                     .tensor = &tensor.info,
                     .scratch = scratch},
                    info);
}

void WholeTensors::add_saved(SavedState& state, Range written, const std::string& prefix,
                             std::span<AlignedBuffer<Scalar>> slots) const {
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    if (array_[slot] == 0) continue;  // no checkpoint has such an array
    const auto add = [&](Range range, Range held, bool saves) {
      state.push_back({.array = fmt::format("{}optimizer.{}", prefix, slot),
                       .size = array_[slot],
                       .range = range,
                       .memory = as_buffer(part(slots[slot].span(), held)),
                       .written = saves ? range : Range{},
                       .by_stage = true,
                       .chunk_offsets = chunk_offsets_[slot]});
    };
    const std::size_t before = state.size();
    for (const Tensor& tensor : tensors_) {
      if (tensor.held[slot].empty()) continue;
      add(tensor.in_array[slot], tensor.held[slot], written.contains(tensor.range.begin));
    }
    if (state.size() == before) add({}, {}, false);  // offset_by_stage() takes the size of the array from it
  }
}

void WholeTensors::for_each_state(
    const std::function<void(std::size_t param, std::size_t slot, Range held)>& take) const {
  for (const Tensor& tensor : tensors_) {
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      if (!tensor.held[slot].empty()) take(tensor.param, slot, tensor.held[slot]);
    }
  }
}

}  // namespace lockstep
