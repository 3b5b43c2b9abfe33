// Quantiles of the numbers of a column: exact of as many as are kept; beyond that of a sample, which is
// chosen by a key of the record. So they are the same however many ranks share the work, and memory is
// bounded. Numbers of several columns that have the same key are of one record.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/column_stats.h"
#include "lockstep/data/table/values/message.h"

namespace lockstep {

class QuantileSketch {
 public:
  /// A number, and the key of its record.
  struct Kept {
    std::uint64_t key;
    double value;
    auto operator<=>(const Kept&) const = default;
  };

  /// Keeps the numbers of the `max_kept` smallest keys.
  explicit QuantileSketch(Index max_kept = 0) : max_kept_(max_kept) {}

  void add(std::uint64_t key, double value) {
    if (key > limit_ || max_kept_ == 0) return;
    kept_.push_back({key, value});
    if (std::ssize(kept_) >= 2 * max_kept_) prune();
  }
  void merge(const QuantileSketch& other);
  /// The numbers that are kept, in ascending order.
  std::vector<double> sorted() const;
  /// These numbers in ascending order of their keys.
  std::vector<Kept> by_key() const;

  void write(MessageWriter& message) const;
  static QuantileSketch read(MessageReader& message);

 private:
  void prune();

  Index max_kept_;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();  // no larger key is kept
  std::vector<Kept> kept_;
};

/// A key of a record, that of the `position`-th good one of a chunk.
std::uint64_t record_key(std::size_t chunk, Index position);

/// Numbers that each of so many columns keeps, so that all together stay within 64 MiB on a rank,
/// and twice that while records are read. No column keeps fewer than 1,024.
Index kept_for_quantiles(Index columns);

/// By linear interpolation. Requires numbers in ascending order, at least one.
Quartiles quartiles_of(const std::vector<double>& sorted);

/// Edges of at most `bins` bins with about as many of the numbers in each, increasing: numbers that occur,
/// from the least to the greatest; all different ones if there are no more than bins + 1. A single edge if
/// there is one number.
std::vector<double> edges_of(const std::vector<double>& sorted, Index bins);

}  // namespace lockstep
