#include "lockstep/data/table/values/column_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

// The tree grows best first, as scikit-learn's does with max_leaf_nodes. The records are sorted by their
// number, so a leaf is a range of them, and a split of it a position inside the range. What a split gains is
//
//   score(left) + score(right) - score(leaf),  score = sum over classes of (weight of the class)^2 / weight
//
// which is the decrease of the Gini impurity times the weight of the records. For numbers as labels the score
// is (sum of weight x label)^2 / weight, and the gain that of their squared error; labels are taken around
// their mean, so that few digits are lost. All sums follow the order of the sorted records.

// A smaller share of the impurity of all records is rounding, not gain.
constexpr double kMinGain = 1e-9;

// Sums over the labels of some records.
class LabelSums {
 public:
  explicit LabelSums(Index classes) : sums_(static_cast<std::size_t>(std::max<Index>(classes, 1))) {
    is_number_ = classes == 0;
  }

  void add(const LabelledNumber& record) { change(record, record.weight); }
  void remove(const LabelledNumber& record) { change(record, -record.weight); }
  double score() const { return weight_ > 0 ? squares_ / weight_ : 0; }

 private:
  void change(const LabelledNumber& record, double weight) {
    weight_ += weight;
    if (is_number_) {
      sums_.front() += weight * record.label;
      squares_ = sums_.front() * sums_.front();
      return;
    }
    double& sum = sums_[static_cast<std::size_t>(record.label)];
    squares_ += weight * (2 * sum + weight);
    sum += weight;
  }

  std::vector<double> sums_;  // of each class its weight; else of weight x label
  double weight_ = 0;
  double squares_ = 0;  // of the sums, added
  bool is_number_ = false;
};

struct Leaf {
  Range records;
  Index split = 0;  // where the right part begins
  double gain = 0;  // 0: it stays one
};

class Tree {
 public:
  Tree(std::vector<LabelledNumber> records, const TreeRule& rule)
      : records_(std::move(records)), rule_(rule) {
    std::erase_if(records_, [](const LabelledNumber& record) { return record.weight <= 0; });
    std::ranges::stable_sort(records_, {}, &LabelledNumber::number);
    if (rule_.classes) {
      for (const LabelledNumber& record : records_)
        classes_ = std::max(classes_, static_cast<Index>(record.label) + 1);
    } else {
      double weight = 0;
      double sum = 0;
      for (const LabelledNumber& record : records_) {
        weight += record.weight;
        sum += record.weight * record.label;
      }
      for (LabelledNumber& record : records_) record.label -= sum / weight;
    }
    min_gain_ = kMinGain * impurity();
  }

  std::vector<double> thresholds() const {
    std::vector<Leaf> leaves{leaf_of({0, std::ssize(records_)})};
    while (std::ssize(leaves) < rule_.max_leaves) {
      const auto best = std::ranges::max_element(leaves, {}, &Leaf::gain);
      if (best->gain <= 0) break;
      const Leaf split = *best;
      *best = leaf_of({split.records.begin, split.split});
      leaves.insert(best + 1, leaf_of({split.split, split.records.end}));
    }
    std::vector<double> found;
    for (std::size_t i = 1; i < leaves.size(); ++i) {
      const Index split = leaves[i].records.begin;
      const double below = at(records_, split - 1).number;
      found.push_back(below + (at(records_, split).number - below) / 2);
    }
    return found;
  }

 private:
  // The impurity of all records: their weight less their score, or the sum of squared labels.
  double impurity() const {
    LabelSums all(classes_);
    double squares = 0;
    for (const LabelledNumber& record : records_) {
      all.add(record);
      squares += record.weight * (rule_.classes ? 1 : record.label * record.label);
    }
    return squares - all.score();
  }

  Leaf leaf_of(Range range) const {
    Leaf leaf{.records = range};
    LabelSums left(classes_);
    LabelSums right(classes_);
    for (Index i = range.begin; i < range.end; ++i) right.add(at(records_, i));
    const double whole = right.score();
    double best = min_gain_;
    for (Index i = range.begin + 1; i < range.end; ++i) {
      left.add(at(records_, i - 1));
      right.remove(at(records_, i - 1));
      const bool fits = i - range.begin >= rule_.leaf_records && range.end - i >= rule_.leaf_records;
      if (!fits || at(records_, i - 1).number == at(records_, i).number) continue;
      const double gain = left.score() + right.score() - whole;
      if (gain <= best) continue;
      best = leaf.gain = gain;
      leaf.split = i;
    }
    return leaf;
  }

  std::vector<LabelledNumber> records_;
  TreeRule rule_;
  Index classes_ = 0;
  double min_gain_ = 0;
};

// Names that mean yes, in small letters; so does the number 1.
constexpr std::array kYes{"true", "t",   "yes",      "y",       "ja",  "j",    "oui", "si",
                          "sí",   "sim", "positive", "positiv", "pos", "case", "+"};

bool means_yes(const std::string& name) {
  if (const std::optional<double> number = parse_number(name)) return *number == 1;
  return std::ranges::find(kYes, in_lower_case(name)) != kYes.end();
}

// Whether the first of two classes is the positive one. Beside a greater number, 1 is a number like others.
bool is_first_positive(const ValueCounts::Entry& before, const ValueCounts::Entry& after) {
  const bool numbers = parse_number(before.text) && parse_number(after.text);
  const bool named = !numbers && means_yes(before.text);
  if (named != means_yes(after.text)) return named;
  return 10 * before.count < 4 * (before.count + after.count);
}

}  // namespace

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

bool NumberStats::merge_in_single_precision() const {
  constexpr double kRounding = std::numeric_limits<float>::epsilon() / 2;
  constexpr double kShare = 1e-3;
  return kRounding * std::max(std::abs(min), std::abs(max)) > kShare * deviation() && min < max;
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

std::vector<std::string> ordered_classes(std::span<const ValueCounts::Entry> classes,
                                         const std::string& positive, std::string_view label) {
  std::vector<ValueCounts::Entry> sorted(classes.begin(), classes.end());
  const bool numbers =
      std::ranges::all_of(sorted, [](const auto& each) { return parse_number(each.text).has_value(); });
  std::ranges::sort(sorted, [numbers](const auto& a, const auto& b) {
    const double x = numbers ? *parse_number(a.text) : 0;
    const double y = numbers ? *parse_number(b.text) : 0;
    return x != y ? x < y : a.text < b.text;
  });
  std::vector<std::string> names;
  for (const ValueCounts::Entry& each : sorted) names.push_back(each.text);
  const bool known = std::ranges::find(names, positive) != names.end();
  error_if(!positive.empty() && (names.size() != 2 || !known),
           "data.positive = {}: {} has the {} classes {}, expected two, of which this is one",
           in_quotes(positive), label, with_commas(std::ssize(names)), listed(names));
  if (names.size() == 2 &&
      (positive.empty() ? is_first_positive(sorted[0], sorted[1]) : names[0] == positive))
    std::swap(names[0], names[1]);
  return names;
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
  std::vector<double> values;
  for (const Kept& kept : by_key()) values.push_back(kept.value);
  std::ranges::sort(values);
  return values;
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

std::vector<double> tree_thresholds(std::vector<LabelledNumber> records, const TreeRule& rule) {
  return Tree(std::move(records), rule).thresholds();
}

LabelSample::LabelSample(const ValueSample& labels, const ValueSample* weights, bool classes)
    : labels_(labels.by_key()), classes_(classes) {
  if (weights != nullptr) weights_ = weights->by_key();
  if (!classes) return;
  std::vector<double> known;
  for (const ValueSample::Kept& label : labels_) known.push_back(label.value);
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (ValueSample::Kept& label : labels_)
    label.value = static_cast<double>(std::ranges::lower_bound(known, label.value) - known.begin());
}

std::vector<LabelledNumber> LabelSample::join(const ValueSample& numbers) const {
  std::vector<LabelledNumber> records;
  auto label = labels_.begin();
  auto weight = weights_.begin();
  const auto advance = [](auto& from, auto end, std::uint64_t key) {
    while (from != end && from->key < key) ++from;
    return from != end && from->key == key;
  };
  for (const ValueSample::Kept& number : numbers.by_key()) {
    if (!advance(label, labels_.end(), number.key)) continue;
    const bool weighs = advance(weight, weights_.end(), number.key);
    if (!weights_.empty() && !weighs) continue;
    records.push_back({number.value, label->value, weights_.empty() ? 1 : weight->value});
  }
  return records;
}

}  // namespace lockstep
