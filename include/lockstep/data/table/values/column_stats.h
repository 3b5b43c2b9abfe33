// Statistics of the values of a column. Sums are taken chunk by chunk and merged in the order of the chunks,
// so they have the same bits however many ranks share the work.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/message.h"

namespace lockstep {

struct NumberStats {
  Index count = 0;
  double mean = 0;
  double squares = 0;  ///< sum of the squared differences from the mean
  double min = 0;
  double max = 0;

  /// As if the values of `later` had come after these (Chan, Golub, LeVeque 1979).
  void merge(const NumberStats& later);
  /// Root of the mean squared difference from the mean; 0 for none.
  double deviation() const;
};

struct Quartiles {
  double lower = 0;
  double median = 0;
  double upper = 0;

  bool operator==(const Quartiles&) const = default;
};

/// The numbers of one chunk.
class NumberSums {
 public:
  void add(double value) {
    if (count_ == 0) shift_ = min_ = max_ = value;
    ++count_;
    // Off the first value, so that few digits are lost where the mean is large beside the deviation.
    const double difference = value - shift_;
    sum_ += difference;
    squares_ += difference * difference;
    min_ = value < min_ ? value : min_;
    max_ = value > max_ ? value : max_;
  }
  NumberStats stats() const;

 private:
  Index count_ = 0;
  double shift_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double min_ = 0;
  double max_ = 0;
};

/// How often each text occurs, as long as there are not too many different ones.
class ValueCounts {
 public:
  explicit ValueCounts(Index limit = 0) : limit_(limit) {}

  void add(std::string_view text, Index times = 1);
  void merge(const ValueCounts& other);
  /// There were more than `limit` different texts, whose counts are then forgotten.
  bool overflowed() const { return overflowed_; }
  Index distinct() const { return std::ssize(counts_); }

  struct Entry {
    std::string text;
    Index count = 0;
  };
  /// The most frequent first; those of one count in the order of their bytes.
  std::vector<Entry> by_count() const;

  void write(MessageWriter& message) const;
  static ValueCounts read(MessageReader& message);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
  };
  void overflow();

  Index limit_;
  bool overflowed_ = false;
  std::unordered_map<std::string, Index, Hash, std::equal_to<>> counts_;
};

// Quantiles of the numbers of a column: exact of as many as are kept; beyond that of a sample, which is
// chosen by a key of the record. So they are the same however many ranks share the work, and memory is
// bounded. Numbers of several columns that have the same key are of one record.

class ValueSample {
 public:
  /// A number, and the key of its record.
  struct Kept {
    std::uint64_t key;
    double value;
    auto operator<=>(const Kept&) const = default;
  };

  /// Keeps the numbers of the `max_kept` smallest keys.
  explicit ValueSample(Index max_kept = 0) : max_kept_(max_kept) {}

  void add(std::uint64_t key, double value) {
    if (key > limit_ || max_kept_ == 0) return;
    kept_.push_back({key, value});
    if (std::ssize(kept_) >= 2 * max_kept_) prune();
  }
  void merge(const ValueSample& other);
  /// The numbers that are kept, in ascending order.
  std::vector<double> sorted() const;
  /// These numbers in ascending order of their keys.
  std::vector<Kept> by_key() const;

  void write(MessageWriter& message) const;
  static ValueSample read(MessageReader& message);

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
