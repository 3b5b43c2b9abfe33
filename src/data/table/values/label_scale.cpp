#include "lockstep/data/table/values/label_scale.h"
#include "label_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

bool is_number_label(const TableColumn& column) {
  return column.label && column.kind == ColumnKind::kNumeric;
}

bool is_scaled_label(const TableColumn& column) {
  return is_number_label(column) && column.scale != Scale::kNone;
}

constexpr double kClip = 3;

// The last number before the limit is the largest that a feature can be undone to.
double undo_clip(Scalar clipped) {
  constexpr double kLast = kClip * (1 - 1e-6);
  const double y = std::clamp(static_cast<double>(clipped), -kLast, kLast);
  return y / std::sqrt(1 - (y / kClip) * (y / kClip));
}

// Half of the range stands for the distance of quartiles that are equal.
LabelScale robust_scale(const TableColumn& column) {
  const Quartiles quartiles = column.quartiles.value_or(Quartiles{});
  const double between = quartiles.upper - quartiles.lower;
  return {.shift = quartiles.median,
          .range = between > 0 ? between : (column.numbers.max - column.numbers.min) / 2,
          .clips = true};
}

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
      centre();
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
    for (std::size_t i = 1; i < leaves.size(); ++i) found.push_back(threshold_at(leaves[i].records.begin));
    return found;
  }

 private:
  void centre() {
    double weight = 0;
    double sum = 0;
    for (const LabelledNumber& record : records_) {
      weight += record.weight;
      sum += record.weight * record.label;
    }
    if (records_.empty()) return;
    for (LabelledNumber& record : records_) record.label -= sum / weight;
  }

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

  double threshold_at(Index split) const {
    const double below = at(records_, split - 1).number;
    return below + (at(records_, split).number - below) / 2;
  }

  std::vector<LabelledNumber> records_;
  TreeRule rule_;
  Index classes_ = 0;
  double min_gain_ = 0;
};

}  // namespace

LabelScale scale_of(const TableColumn& column) {
  const NumberStats& stats = column.numbers;
  switch (column.scale) {
    case Scale::kNone:
      return {};
    case Scale::kMinMax:
      return {.shift = stats.min, .range = stats.max - stats.min};
    case Scale::kStandard:
    case Scale::kLog:
      return {.shift = stats.mean, .range = stats.deviation(), .logarithm = column.scale == Scale::kLog};
    case Scale::kRobust:
      return robust_scale(column);
  }
  return {};
}

double smooth_clip(double x) {
  return x / std::sqrt(1 + (x / kClip) * (x / kClip));
}

double LabelScale::apply(double number) const {
  const double straight = ((logarithm ? signed_log(number) : number) - shift) * factor();
  return clips ? smooth_clip(straight) : straight;
}

double missing_feature(const TableColumn& column) {
  const LabelScale scale = scale_of(column);
  // The mean of numbers with a logarithm is that of their logarithms.
  if (column.fill) return scale.apply(*column.fill);
  const double straight = (column.numbers.mean - scale.shift) * scale.factor();
  return scale.clips ? smooth_clip(straight) : straight;
}

Scalar LabelScale::undo(Scalar target) const {
  const double x = (clips ? undo_clip(target) : static_cast<double>(target)) * range + shift;
  return static_cast<Scalar>(logarithm ? std::copysign(std::expm1(std::abs(x)), x) : x);
}

std::vector<LabelScale> label_scales(const TableSchema& schema) {
  std::vector<LabelScale> scales;
  if (std::ranges::none_of(schema.columns, is_scaled_label)) return scales;
  // Numbers come first, then classes, as Encoder has them.
  for (const TableColumn& column : schema.columns) {
    if (is_number_label(column)) scales.push_back(scale_of(column));
  }
  scales.resize(static_cast<std::size_t>(schema.labels()));
  return scales;
}

std::vector<LabelScale> read_label_scales(const std::string& json) {
  const std::optional<TableSchema> schema = read_table_schema(json);
  return schema ? label_scales(*schema) : std::vector<LabelScale>();
}

std::string describe_scaled_label(const TableSchema& schema) {
  const auto scaled = std::ranges::find_if(schema.columns, is_scaled_label);
  if (scaled == schema.columns.end()) return "";
  return fmt::format("{}: {}", excerpt(scaled->name), to_string(scaled->scale));
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
