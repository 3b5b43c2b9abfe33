// Statistics of the values of a column. Sums are taken chunk by chunk and merged in the order of the chunks,
// so they have the same bits however many ranks share the work.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/base/types.h"
#include "lockstep/data/message.h"

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
  /// Whether rounding the values to single precision moves them by more than a thousandth of the deviation.
  bool merge_in_single_precision() const;
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

    template <class Message>
    void pass(Message& message) {
      message(text, count);
    }
  };
  /// The most frequent first; those of one count in the order of their bytes.
  std::vector<Entry> by_count() const;

  template <class Message>
  void pass(Message& message) {
    std::vector<Entry> entries = by_count();
    message(limit_, overflowed_, entries);
    for (const Entry& entry : entries) counts_[entry.text] = entry.count;
  }

 private:
  void overflow();

  Index limit_;
  bool overflowed_ = false;
  std::unordered_map<std::string, Index, TextHash, std::equal_to<>> counts_;
};

/// The classes of a label in order: by size if all are numbers, else by their letters; of two, the positive
/// one last: its probability is that of yes, and precision, recall, F1 and average precision are about it.
/// That is `positive` or, where it is "", the one whose name means yes where only one does; else the one with
/// less than 0.4 of the records; else the later one. `label` names the label in messages. Errors: ConfigError
/// for a `positive` that is no class, or where there are not two.
std::vector<std::string> ordered_classes(std::span<const ValueCounts::Entry> classes,
                                         const std::string& positive, std::string_view label);

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

  template <class Message>
  void pass(Message& message) {
    prune();
    message(max_kept_, kept_);
  }

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

// Edges of bins from the label: the thresholds of a decision tree that is fitted on one column alone
// (Gorishniy, Rubachev & Babenko 2022, "On Embeddings for Numerical Features", section 3.2.2).

/// A number of a column with the label of its record: a class 0, 1, ... or a number.
struct LabelledNumber {
  double number = 0;
  double label = 0;
  double weight = 1;  ///< how often the record counts
};

struct TreeRule {
  Index max_leaves = 2;
  Index leaf_records = 1;  ///< fewest records of a leaf, whatever they weigh; those of weight 0 are left out
  bool classes = false;    ///< splits lower the Gini impurity of classes; else the variance of numbers
};

/// The thresholds of the tree, increasing: fewer than max_leaves. Leaves are split in the order of what that
/// gains, the lower one first of two alike, each between two numbers, in the middle. Labels of classes are
/// whole numbers from 0 on.
std::vector<double> tree_thresholds(std::vector<LabelledNumber> records, const TreeRule& rule);

/// The labels and weights of a sample of records.
class LabelSample {
 public:
  /// `weights`: null if all records weigh 1. Labels of classes are any numbers, alike for those of a class.
  LabelSample(const ValueSample& labels, const ValueSample* weights, bool classes);

  /// The numbers of a column of the records that are in both samples, by the keys of the records.
  std::vector<LabelledNumber> join(const ValueSample& numbers) const;
  bool classes() const { return classes_; }

 private:
  std::vector<ValueSample::Kept> labels_;   // by key
  std::vector<ValueSample::Kept> weights_;  // by key; empty: all 1
  bool classes_;
};

}  // namespace lockstep
