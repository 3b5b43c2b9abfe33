#include "lockstep/distributed/exchange/factored_gradients.h"

#include <algorithm>

#include "lockstep/base/timer.h"

namespace lockstep {
namespace {

// Numbers of a product that stay in the second-level cache until the step reads them.
constexpr Index kProductSize = Index{1} << 17;

Index rows_at_once(const FactoredTensor& tensor) {
  constexpr Index kFewest = 16;
  constexpr Index kMax = 128;
  return std::clamp(kProductSize / tensor.in / kFewest * kFewest, kFewest, kMax);
}

Index max_samples(const Plan& plan) {
  return plan.replicas * plan.max_rows;
}

Index x_size(const Plan& plan, const FactoredTensor& tensor) {
  return round_up(max_samples(plan) * tensor.in, kAlignment);
}

Index dy_size(const Plan& plan, const FactoredTensor& tensor) {
  return round_up(max_samples(plan) * tensor.out, kAlignment);
}

Index product_size(const Plan& plan) {
  Index most = 0;
  for (const FactoredTensor& tensor : plan.factored)
    most = std::max(most, (rows_at_once(tensor) + 1) * tensor.in);
  return most;
}

}  // namespace

Index FactoredGradients::shared_size(const Plan& plan) {
  Index size = 0;
  for (const FactoredTensor& tensor : plan.factored) size += x_size(plan, tensor) + dy_size(plan, tensor);
  return size;
}

Index FactoredGradients::own_size(const Plan& plan) {
  Index packed = 0;
  for (const FactoredTensor& tensor : plan.factored) packed += x_size(plan, tensor);
  return 2 * packed + product_size(plan);  // a short last batch is packed in a layout of its own
}

FactoredGradients::FactoredGradients(const Plan& plan, std::span<Scalar> shared) {
  if (shared.empty()) return;
  tensors_ = plan.factored;
  Index offset = 0;
  const auto take = [&](Index size) {
    offset += size;
    return part(shared, {offset - size, offset});
  };
  for (const FactoredTensor& tensor : tensors_) {
    x_.push_back(take(x_size(plan, tensor)));
    dy_t_.push_back(take(dy_size(plan, tensor)));
  }
  lanes_.resize(static_cast<std::size_t>(plan.threads));
  for (Lane& lane : lanes_) lane.product = AlignedBuffer<Scalar>(product_size(plan));
}

void FactoredGradients::begin_step(std::span<const Index> samples, Scalar max_gradient) {
  max_gradient_ = max_gradient;
  good_ = true;
  begins_.assign(1, 0);
  for (const Index count : samples) begins_.push_back(begins_.back() + count);
  for (Lane& lane : lanes_) {
    lane.packed = kNone;
    lane.seconds = 0;
  }
}

FactorBuffers FactoredGradients::buffers(std::size_t tensor, Index replica) {
  const Index first = at(begins_, replica);
  return {.x = x_[tensor].data() + first * tensors_[tensor].in,
          .dy_t = dy_t_[tensor].data() + first,
          .stride = begins_.back()};
}

std::size_t FactoredGradients::tensor_at(Index offset) const {
  const auto found =
      std::ranges::find_if(tensors_, [&](const FactoredTensor& t) { return t.range.contains(offset); });
  return static_cast<std::size_t>(found - tensors_.begin());
}

Index FactoredGradients::part_end(Index offset) const {
  const FactoredTensor& tensor = tensors_[tensor_at(offset)];
  const Index part = rows_at_once(tensor) * tensor.in;
  return std::min(offset + part - (offset - tensor.range.begin) % part, tensor.range.end);
}

std::span<Scalar> FactoredGradients::product(int thread, Range range) {
  const Stopwatch watch;
  Lane& lane = at(lanes_, thread);
  const std::size_t number = tensor_at(range.begin);
  const FactoredTensor& tensor = tensors_[number];
  const Range within{range.begin - tensor.range.begin, range.end - tensor.range.begin};
  const Range rows{within.begin / tensor.in, (within.end + tensor.in - 1) / tensor.in};
  Matrix product(lane.product.data(), rows.size(), tensor.in);
  if (begins_.back() == 0) {
    std::ranges::fill(product.values(), Scalar{0});
  } else {
    if (lane.packed != number) lane.x.pack(x_of(number));
    lane.packed = number;
    lane.x.multiply(dy_rows(number, rows), product);
  }
  lane.seconds += watch.seconds();
  const Index first = within.begin - rows.begin * tensor.in;
  return part(lane.product.span(), {first, first + range.size()});
}

}  // namespace lockstep
