#include "lockstep/data/table/quantile_sketch.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

void QuantileSketch::prune() {
  if (std::ssize(kept_) <= most_) return;
  const auto end = kept_.begin() + most_;
  std::nth_element(kept_.begin(), end - 1, kept_.end());
  kept_.erase(end, kept_.end());
  limit_ = kept_.back().key;
}

void QuantileSketch::merge(const QuantileSketch& other) {
  most_ = std::max(most_, other.most_);
  kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  prune();
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
  message.put(most_);
  message.put(std::ssize(pruned.kept_));
  for (const Kept& kept : pruned.kept_) message.put(kept);
}

QuantileSketch QuantileSketch::read(MessageReader& message) {
  QuantileSketch sketch(message.take<Index>());
  const auto count = message.take<Index>();
  for (Index i = 0; i < count; ++i) sketch.kept_.push_back(message.take<Kept>());
  return sketch;
}

// The finaliser of MurmurHash3 after a step of the golden ratio, which tells neighbours apart (Steele, Lea &
// Flood 2014).
std::uint64_t record_key(std::size_t chunk, Index position) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  std::uint64_t key = ((std::uint64_t{chunk} << 32) + static_cast<std::uint64_t>(position) + 1) * kGolden;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9U;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebU;
  return key ^ (key >> 31);
}

Index kept_for_quantiles(Index columns) {
  constexpr Index kMost = Index{1} << 16;
  constexpr Index kLeast = Index{1} << 10;
  constexpr Index kAll = Index{1} << 22;
  return std::clamp(kAll / std::max<Index>(columns, 1), kLeast, kMost);
}

Quartiles quartiles_of(const std::vector<double>& sorted) {
  const auto quantile = [&sorted](double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
  };
  return {.lower = quantile(0.25), .median = quantile(0.5), .upper = quantile(0.75)};
}

std::vector<double> edges_of(const std::vector<double>& sorted, Index bins) {
  std::vector<double> edges;
  std::ranges::unique_copy(sorted, std::back_inserter(edges));
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
