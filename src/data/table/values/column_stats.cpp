#include "lockstep/data/table/values/column_stats.h"

#include <algorithm>
#include <cmath>

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

}  // namespace lockstep
