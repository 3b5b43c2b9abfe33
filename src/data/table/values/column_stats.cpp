#include "lockstep/data/table/values/column_stats.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lockstep/base/hash.h"

namespace lockstep {

void NumberStats::merge(const NumberStats& later) {
  if (later.count == 0) return;
  if (count == 0) {
    *this = later;
    return;
  }
  const auto before = static_cast<double>(count);
  const auto added = static_cast<double>(later.count);
  const double difference = later.mean - mean;
  count += later.count;
  const auto all = static_cast<double>(count);
  mean += difference * (added / all);
  squares += later.squares + difference * difference * (before * added / all);
  min = std::min(min, later.min);
  max = std::max(max, later.max);
}

double NumberStats::deviation() const {
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

NumberStats NumberSums::stats() const {
  if (count_ == 0) return {};
  const double mean = sum_ / static_cast<double>(count_);
  return {.count = count_,
          .mean = shift_ + mean,
          .squares = std::max(0.0, squares_ - sum_ * mean),
          .min = min_,
          .max = max_};
}

std::size_t ValueCounts::Hash::operator()(std::string_view text) const {
  return hash_text(text);
}

void ValueCounts::overflow() {
  overflowed_ = true;
  counts_.clear();
}

void ValueCounts::add(std::string_view text, Index times) {
  if (overflowed_) return;
  const auto found = counts_.find(text);
  if (found != counts_.end()) {
    found->second += times;
    return;
  }
  counts_.emplace(text, times);
  if (distinct() > limit_) overflow();
}

void ValueCounts::merge(const ValueCounts& other) {
  if (other.overflowed_) overflow();
  for (const auto& [text, count] : other.counts_) add(text, count);
}

std::vector<ValueCounts::Entry> ValueCounts::by_count() const {
  std::vector<Entry> entries;
  for (const auto& [text, count] : counts_) entries.push_back({text, count});
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  return entries;
}

void ValueCounts::write(MessageWriter& message) const {
  message.put(limit_);
  message.put(overflowed_);
  message.put(counts_.size());
  for (const auto& [text, count] : counts_) {
    message.put_text(text);
    message.put(count);
  }
}

ValueCounts ValueCounts::read(MessageReader& message) {
  ValueCounts counts(message.take<Index>());
  counts.overflowed_ = message.take<bool>();
  for (auto left = message.take<std::size_t>(); left > 0; --left) {
    std::string text = message.take_text();
    counts.counts_.emplace(std::move(text), message.take<Index>());
  }
  return counts;
}

void ValueSample::prune() {
  if (std::ssize(kept_) <= max_kept_) return;
  const auto end = kept_.begin() + max_kept_;
  std::nth_element(kept_.begin(), end - 1, kept_.end());
  kept_.erase(end, kept_.end());
  limit_ = kept_.back().key;
}

void ValueSample::merge(const ValueSample& other) {
  max_kept_ = std::max(max_kept_, other.max_kept_);
  kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  prune();
}

std::vector<ValueSample::Kept> ValueSample::by_key() const {
  ValueSample pruned = *this;
  pruned.prune();
  std::ranges::sort(pruned.kept_);
  return std::move(pruned.kept_);
}

std::vector<double> ValueSample::sorted() const {
  ValueSample pruned = *this;
  pruned.prune();
  std::vector<double> values;
  values.reserve(pruned.kept_.size());
  for (const Kept& kept : pruned.kept_) values.push_back(kept.value);
  std::ranges::sort(values);
  return values;
}

void ValueSample::write(MessageWriter& message) const {
  ValueSample pruned = *this;
  pruned.prune();
  message.put(max_kept_);
  message.put(std::ssize(pruned.kept_));
  for (const Kept& kept : pruned.kept_) message.put(kept);
}

ValueSample ValueSample::read(MessageReader& message) {
  ValueSample sample(message.take<Index>());
  const auto count = message.take<Index>();
  for (Index i = 0; i < count; ++i) sample.kept_.push_back(message.take<Kept>());
  return sample;
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
