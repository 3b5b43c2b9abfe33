#include "lockstep/dist/node_factors.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/timer.h"

namespace lockstep {
namespace {

// What stays in the second-level cache between the product and the step.
constexpr Index kProductSize = Index{1} << 17;

Index rows_at_once(const FactoredTensor& tensor) {
  constexpr Index kFewest = 16;
  constexpr Index kMost = 128;
  return std::clamp(kProductSize / tensor.in / kFewest * kFewest, kFewest, kMost);
}

Index most_samples(const Plan& plan) {
  return plan.replicas * plan.most_rows;
}

Index x_size(const Plan& plan, const FactoredTensor& tensor) {
  return round_up(most_samples(plan) * tensor.in, kAlignment);
}

Index dy_size(const Plan& plan, const FactoredTensor& tensor) {
  return round_up(most_samples(plan) * tensor.out, kAlignment);
}

Index product_size(const Plan& plan) {
  Index most = 0;
  for (const FactoredTensor& tensor : plan.factored)
    most = std::max(most, (rows_at_once(tensor) + 1) * tensor.in);
  return most;
}

}  // namespace

Index NodeFactors::shared_size(const Plan& plan) {
  Index size = 0;
  for (const FactoredTensor& tensor : plan.factored) size += x_size(plan, tensor) + dy_size(plan, tensor);
  return size;
}

Index NodeFactors::own_size(const Plan& plan) {
  Index packed = 0;
  for (const FactoredTensor& tensor : plan.factored) packed += x_size(plan, tensor);
  return 2 * packed + product_size(plan);  // a short last batch is packed in a layout of its own
}

NodeFactors::NodeFactors(const Plan& plan, std::span<Scalar> shared) {
  if (shared.empty()) return;
  tensors_ = plan.factored;
  Index place = 0;
  const auto take = [&](Index size) {
    place += size;
    return part(shared, {place - size, place});
  };
  for (const FactoredTensor& tensor : tensors_) {
    x_.push_back(take(x_size(plan, tensor)));
    dy_t_.push_back(take(dy_size(plan, tensor)));
  }
  lanes_.resize(static_cast<std::size_t>(plan.threads));
  for (Lane& lane : lanes_) lane.product = AlignedBuffer<Scalar>(product_size(plan));
}

void NodeFactors::begin_step(std::span<const Index> samples) {
  begins_.assign(1, 0);
  for (const Index count : samples) begins_.push_back(begins_.back() + count);
  for (Lane& lane : lanes_) {
    lane.packed = kNone;
    lane.seconds = 0;
  }
}

FactorRoom NodeFactors::room(std::size_t tensor, Index replica) {
  const Index first = begins_[static_cast<std::size_t>(replica)];
  return {.x = x_[tensor].data() + first * tensors_[tensor].in,
          .dy_t = dy_t_[tensor].data() + first,
          .stride = begins_.back()};
}

ConstMatrix NodeFactors::x_of(std::size_t tensor, Range samples) const {
  const Index in = tensors_[tensor].in;
  return {x_[tensor].data() + samples.begin * in, samples.size(), in};
}

ConstMatrix NodeFactors::dy_rows(std::size_t tensor, Range rows) const {
  return {dy_t_[tensor].data() + rows.begin * begins_.back(), rows.size(), begins_.back()};
}

bool NodeFactors::all_within(Index replica, Scalar most) const {
  const auto number = static_cast<std::size_t>(replica);
  const Range samples{begins_[number], begins_[number + 1]};
  for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    if (!samples.empty() && !tensor_within(tensor, samples, most)) return false;
  }
  return true;
}

// Small factors have a small product. That of others, which no sound training has, is looked at itself.
bool NodeFactors::tensor_within(std::size_t tensor, Range samples, Scalar most) const {
  const ConstMatrix x = x_of(tensor, samples);
  const auto dy = dy_rows(tensor, {0, tensors_[tensor].out}).middleCols(samples.begin, samples.size());
  const auto small = std::sqrt(most / static_cast<Scalar>(samples.size()));
  const auto is_small = [&](const Scalar* first, Index size) {
    return lockstep::all_within({first, static_cast<std::size_t>(size)}, small);
  };
  bool all_small = is_small(x.data(), x.size());
  for (Index row = 0; all_small && row < dy.rows(); ++row)
    all_small = is_small(dy.data() + row * dy.outerStride(), dy.cols());
  if (all_small) return true;
  const RowMajorMatrix product = dy * x;
  return lockstep::all_within({product.data(), static_cast<std::size_t>(product.size())}, most);
}

std::size_t NodeFactors::tensor_at(Index place) const {
  const auto found =
      std::ranges::find_if(tensors_, [&](const FactoredTensor& t) { return t.range.contains(place); });
  return static_cast<std::size_t>(found - tensors_.begin());
}

Index NodeFactors::part_end(Index place) const {
  const FactoredTensor& tensor = tensors_[tensor_at(place)];
  const Index part = rows_at_once(tensor) * tensor.in;
  return std::min(place + part - (place - tensor.range.begin) % part, tensor.range.end);
}

std::span<Scalar> NodeFactors::product(int thread, Range range) {
  const Stopwatch watch;
  Lane& lane = lanes_[static_cast<std::size_t>(thread)];
  const std::size_t number = tensor_at(range.begin);
  const FactoredTensor& tensor = tensors_[number];
  const Range within{range.begin - tensor.range.begin, range.end - tensor.range.begin};
  const Range rows{within.begin / tensor.in, (within.end + tensor.in - 1) / tensor.in};
  Matrix product(lane.product.data(), rows.size(), tensor.in);
  if (begins_.back() == 0) {
    product.setZero();
  } else {
    if (lane.packed != number) lane.x.pack(x_of(number, {0, begins_.back()}));
    lane.packed = number;
    lane.x.multiply(dy_rows(number, rows), product);
  }
  lane.seconds += watch.seconds();
  const Index first = within.begin - rows.begin * tensor.in;
  return part(lane.product.span(), {first, first + range.size()});
}

}  // namespace lockstep
