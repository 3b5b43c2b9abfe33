#include "lockstep/data/table/values/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lockstep/base/hash.h"

namespace lockstep {

void QuantileSketch::prune() {
  if (std::ssize(kept_) <= max_kept_) return;
  const auto end = kept_.begin() + max_kept_;
  std::nth_element(kept_.begin(), end - 1, kept_.end());
  kept_.erase(end, kept_.end());
  limit_ = kept_.back().key;
}

void QuantileSketch::merge(const QuantileSketch& other) {
  max_kept_ = std::max(max_kept_, other.max_kept_);
  kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  prune();
}

std::vector<QuantileSketch::Kept> QuantileSketch::by_key() const {
  QuantileSketch pruned = *this;
  pruned.prune();
  std::ranges::sort(pruned.kept_);
  return std::move(pruned.kept_);
}

std::vector<double> QuantileSketch::sorted() const {
  QuantileSketch pruned = *this;
  pruned.prune();
  std::vector<double> values;
  values.reserve(pruned.kept_.size());
  for (const Kept& kept : pruned.kept_) values.push_back(kept.value);
  std::ranges::sort(values);
  return values;
}

void QuantileSketch::write(MessageWriter& message) const {
  QuantileSketch pruned = *this;
  pruned.prune();
  message.put(max_kept_);
  message.put(std::ssize(pruned.kept_));
  for (const Kept& kept : pruned.kept_) message.put(kept);
}

QuantileSketch QuantileSketch::read(MessageReader& message) {
  QuantileSketch sketch(message.take<Index>());
  const auto count = message.take<Index>();
  for (Index i = 0; i < count; ++i) sketch.kept_.push_back(message.take<Kept>());
  return sketch;
}

std::uint64_t record_key(std::size_t chunk, Index position) {
  return mix_bits(((std::uint64_t{chunk} << 32) + static_cast<std::uint64_t>(position) + 1) * kGoldenStep);
}

Index kept_for_quantiles(Index columns) {
  constexpr Index kMax = Index{1} << 16;
  constexpr Index kMin = Index{1} << 10;
  constexpr Index kAll = Index{1} << 22;
  return std::clamp(kAll / std::max<Index>(columns, 1), kMin, kMax);
}

Quartiles quartiles_of(const std::vector<double>& sorted) {
  const auto quantile = [&sorted](double share) {
    const double position = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
  };
  return {.lower = quantile(0.25), .median = quantile(0.5), .upper = quantile(0.75)};
}

std::vector<double> edges_of(const std::vector<double>& sorted, Index bins) {
  std::vector<double> edges;
  std::unique_copy(sorted.begin(), sorted.end(), std::back_inserter(edges));
  if (std::ssize(edges) <= bins + 1) return edges;
  edges.clear();
  const Index last = std::ssize(sorted) - 1;
  for (Index i = 0; i <= bins; ++i) {
    const double value = at(sorted, i * last / bins);
    if (edges.empty() || value > edges.back()) edges.push_back(value);
  }
  return edges;
}

}  // namespace lockstep
