#include "lockstep/data/table/inspect/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "data/table/schema/declare_columns.h"
#include "drift.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"
#include "record_sketch.h"

namespace lockstep {

// How well a column predicts the label by itself.

/// Learnt from one half of a sample, and tried on the other. Numbers are predicted from the nearest one,
/// texts from the same one.
struct AlonePrediction {
  Index tried = 0;
  Index right = 0;       ///< records whose class it predicts
  Index most_often = 0;  ///< records of the class that is the most frequent
  double explained = 0;  ///< share of the variance of numbers
};
/// Nothing if the sample is too small to tell. `classes`: the label is one of few values.
std::optional<AlonePrediction> predict_alone(const RecordSketch& sketch,
                                             const std::vector<TableColumn>& columns, std::size_t feature,
                                             std::size_t label, bool classes);

/// It predicts nearly all, and far more than a guess.
bool gives_away(const AlonePrediction& prediction, bool classes);

namespace {

constexpr Index kMaxLabelClasses = 100;

double share_of(Index part, Index whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent_text(Index part, Index whole) {
  return fmt::format("{:.3g} %", 100 * share_of(part, whole));
}

// The different values of a column, the most frequent first; none if they are too many to be counted.
std::vector<ValueCounts::Entry> complete_values(const ColumnSummary& summary) {
  if (summary.text_counts.overflowed() || summary.number_counts.overflowed()) return {};
  std::vector<ValueCounts::Entry> values = summary.text_counts.by_count();
  const std::vector<ValueCounts::Entry> numbers = summary.number_counts.by_count();
  values.insert(values.end(), numbers.begin(), numbers.end());
  std::ranges::stable_sort(values, std::greater<>(), &ValueCounts::Entry::count);
  return values;
}

// Texts, or a few whole numbers.
bool holds_classes(const TableColumn& label, const ColumnSummary& summary) {
  constexpr std::size_t kMaxWhole = 20;
  const std::vector<ValueCounts::Entry> values = complete_values(summary);
  if (values.size() < 2 || std::ssize(values) > kMaxLabelClasses) return false;
  if (label.kind == ColumnKind::kCategorical) return true;
  return values.size() <= kMaxWhole && std::ranges::all_of(values, [](const ValueCounts::Entry& each) {
           const auto number = parse_number(each.text);
           return number && *number == std::floor(*number);
         });
}

class FindingList {
 public:
  FindingList(const TableInspection& inspection, const RecordSketch& sketch)
      : inspection_(inspection), sketch_(sketch) {
    const auto is_label = [](const TableColumn& each) { return each.label; };
    if (std::ranges::count_if(inspection.columns, is_label) != 1) return;
    label_ = std::ranges::find_if(inspection.columns, is_label) - inspection.columns.begin();
    const auto label = static_cast<std::size_t>(*label_);
    has_classes_ = holds_classes(column(label), summary(label));
  }

  std::vector<Finding> take() {
    for (std::size_t i = 0; i < inspection_.columns.size(); ++i) {
      look_at_rounding(i);
      if (inspection_.columns[i].label) look_at_balance(i);
      if (!inspection_.columns[i].is_feature()) continue;
      look_at_constancy(i);
      look_at_identity(i);
      look_at_leak(i);
    }
    look_at_duplicates();
    return std::move(findings_);
  }

 private:
  const TableColumn& column(std::size_t i) const { return inspection_.columns[i]; }
  const ColumnSummary& summary(std::size_t i) const { return inspection_.scan.columns[i]; }

  // Numbers as they are read become single precision without being scaled before.
  void look_at_rounding(std::size_t i) {
    const NumberStats& numbers = summary(i).numbers;
    const bool used = column(i).label || column(i).is_feature();
    if (!used || column(i).kind != ColumnKind::kNumeric || column(i).date || numbers.min == numbers.max)
      return;
    if (static_cast<Scalar>(numbers.min) != static_cast<Scalar>(numbers.max)) return;
    const bool scaled = column(i).scale != Scale::kNone;
    findings_.push_back(
        {.kind = "rounding",
         .column = column(i).name,
         .count = numbers.count,
         .text =
             fmt::format("its {} numbers, from {:.17g} to {:.17g}, are all the same in single precision{}",
                         with_commas(numbers.count), numbers.min, numbers.max,
                         scaled ? ", in which an exported model takes them: subtract a number before" : ""),
         .setting = scaled ? "" : fmt::format("columns = [{}]", toml_text(column(i).name + ": standard"))});
  }

  void look_at_balance(std::size_t i) {
    constexpr double kRare = 0.1;  // part of the share that each class would have
    if (!holds_classes(column(i), summary(i))) return;
    const std::vector<ValueCounts::Entry> classes = complete_values(summary(i));
    const Index all = summary(i).texts + summary(i).numbers.count;
    const ValueCounts::Entry& rarest = classes.back();
    if (share_of(rarest.count, all) * static_cast<double>(classes.size()) >= kRare) return;
    const ValueCounts::Entry& first = classes.front();
    findings_.push_back(
        {.kind = "imbalance",
         .column = column(i).name,
         .count = rarest.count,
         .text =
             fmt::format("{} of the records are {} and {} ({}) are {}: always guessing the first is right as "
                         "often, so look at the auc or the recall rather than at the accuracy",
                         percent_text(first.count, all), in_quotes(first.text),
                         percent_text(rarest.count, all), with_commas(rarest.count), in_quotes(rarest.text)),
         .setting = "train.class_weights = \"balanced\""});
  }

  void look_at_constancy(std::size_t i) {
    constexpr double kNearly = 0.99;
    const std::vector<ValueCounts::Entry> values = complete_values(summary(i));
    const Index records = inspection_.scan.good;
    if (values.size() < 2 || share_of(values.front().count, records) < kNearly) return;
    findings_.push_back(
        {.kind = "nearly constant",
         .column = column(i).name,
         .count = values.front().count,
         .text = fmt::format("it is {} in {} of {} records ({}); another value is {}",
                             in_quotes(values.front().text), with_commas(values.front().count),
                             with_commas(records), percent_text(values.front().count, records),
                             in_quotes(values[1].text)),
         .setting = ignore_line(column(i).name)});
  }

  void look_at_identity(std::size_t i) {
    constexpr Index kMinRecords = 100;
    const Index different = sketch_.different(i);
    if (column(i).kind != ColumnKind::kNumeric || column(i).date || different < kMinRecords) return;
    findings_.push_back(
        {.kind = "identifier",
         .column = column(i).name,
         .count = different,
         .text =
             fmt::format("its {} values, such as {:.17g}, are whole numbers and all different (does it name "
                         "the record, so that nothing can be learnt from it?)",
                         with_commas(different), sketch_.example(i)),
         .setting = ignore_line(column(i).name)});
  }

  // The text of a value in the sketch.
  std::string text_of(std::size_t i, const SketchValue& value) const {
    if (value.missing) return "no value";
    if (column(i).kind == ColumnKind::kNumeric) return fmt::format("{}", value.number);
    for (const ValueCounts* counts : {&summary(i).text_counts, &summary(i).number_counts}) {
      for (const ValueCounts::Entry& entry : counts->by_count()) {
        if (hash_text(entry.text) == value.text) return in_quotes(entry.text);
      }
    }
    return "a text";
  }

  void look_at_leak(std::size_t i) {
    if (!label_) return;
    const auto label = static_cast<std::size_t>(*label_);
    const auto prediction = predict_alone(sketch_, inspection_.columns, i, label, has_classes_);
    if (!prediction || !gives_away(*prediction, has_classes_)) return;
    const std::string how =
        has_classes_
            ? fmt::format("it predicts {} of {} records right, where the most frequent class does {}",
                          with_commas(prediction->right), with_commas(prediction->tried),
                          with_commas(prediction->most_often))
            : fmt::format("it explains {:.1f} % of the variance of {} records", 100 * prediction->explained,
                          with_commas(prediction->tried));
    findings_.push_back(
        {.kind = "leak",
         .column = column(i).name,
         .count = has_classes_ ? prediction->right : prediction->tried,
         .text = fmt::format(
             "it alone gives the label {} away: {}, such as {} with {} (will it be known when you "
             "predict?)",
             in_quotes(column(label).name), how, text_of(i, sketch_.value(0, i)),
             text_of(label, sketch_.value(0, label))),
         .setting = ignore_line(column(i).name)});
  }

  void look_at_duplicates() {
    const HashCounts& counts = sketch_.whole();
    Index repeated = 0;
    const HashCounts::Entry* example = nullptr;
    for (const auto& [hash, entry] : counts.entries()) {
      repeated += entry.count - 1;
      if (entry.count > 1 && (example == nullptr || entry.second < example->second)) example = &entry;
    }
    if (example == nullptr) return;
    const bool sampled = counts.share() < 1;
    const auto all = static_cast<Index>(std::llround(static_cast<double>(repeated) / counts.share()));
    findings_.push_back(
        {.kind = "duplicates",
         .column = "",
         .count = all,
         .text = fmt::format(
             "{}{} of {} records ({}) are the same as an earlier one in all columns that are used, "
             "such as records {} and {}: where one is trained on and the other held back, the "
             "model looks better than it is; remove them from the file",
             sampled ? "about " : "", with_commas(all), with_commas(sketch_.records()),
             percent_text(all, sketch_.records()), with_commas(example->first + 1),
             with_commas(example->second + 1)),
         .setting = ""});
  }

  const TableInspection& inspection_;
  const RecordSketch& sketch_;
  std::optional<Index> label_;  // if there is one only
  bool has_classes_ = false;    // the label
  std::vector<Finding> findings_;
};

constexpr std::size_t kMinTried = 50;

// The labels of the records in which a column had some value.
struct Seen {
  std::map<std::uint64_t, Index> classes;
  double sum = 0;
  Index count = 0;

  void add(const SketchValue& label) {
    ++classes[label.text];
    sum += label.number;
    ++count;
  }
  std::uint64_t most_frequent() const {
    return std::ranges::max_element(classes, {}, [](const auto& each) { return each.second; })->first;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

class Predictor {
 public:
  explicit Predictor(bool numeric) : numeric_(numeric) {}

  void learn(const SketchValue& value, const SketchValue& label) {
    all_.add(label);
    if (value.missing) {
      missing_.add(label);
    } else if (numeric_) {
      by_number_[value.number].add(label);
    } else {
      by_text_[value.text].add(label);
    }
  }
  const Seen& all() const { return all_; }
  /// The labels of such a value, or of all.
  const Seen& look_up(const SketchValue& value) const {
    if (value.missing) return missing_.count > 0 ? missing_ : all_;
    if (!numeric_) {
      const auto found = by_text_.find(value.text);
      return found == by_text_.end() ? all_ : found->second;
    }
    if (by_number_.empty()) return all_;
    const auto above = by_number_.lower_bound(value.number);
    if (above == by_number_.end()) return std::prev(above)->second;
    if (above == by_number_.begin()) return above->second;
    const auto below = std::prev(above);
    return value.number - below->first < above->first - value.number ? below->second : above->second;
  }

 private:
  bool numeric_;
  Seen all_;
  Seen missing_;
  std::map<double, Seen> by_number_;
  std::unordered_map<std::uint64_t, Seen> by_text_;
};

}  // namespace

std::vector<Finding> find_suspicious(const TableInspection& inspection, const TableOptions& options,
                                     const std::vector<OtherSet>& others) {
  std::vector<Index> positions;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) positions.push_back(static_cast<Index>(i));
  const RecordSketch sketch =
      sketch_records(inspection.table, inspection.columns, positions, options.missing_values);
  std::vector<Finding> findings = FindingList(inspection, sketch).take();
  for (const OtherSet& other : others) {
    for (Finding& finding : compare_with(inspection, sketch, other, options)) {
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

std::optional<AlonePrediction> predict_alone(const RecordSketch& sketch,
                                             const std::vector<TableColumn>& columns, std::size_t feature,
                                             std::size_t label, bool classes) {
  if (sketch.sampled() < 2 * kMinTried) return std::nullopt;
  Predictor predictor(columns[feature].kind == ColumnKind::kNumeric);
  for (std::size_t i = 0; i < sketch.sampled(); ++i) {
    if (sketch.in_first_half(i) && !sketch.value(i, label).missing)
      predictor.learn(sketch.value(i, feature), sketch.value(i, label));
  }
  if (predictor.all().count == 0) return std::nullopt;
  AlonePrediction found;
  const std::uint64_t guess = predictor.all().most_frequent();
  double errors = 0;
  double spread = 0;
  for (std::size_t i = 0; i < sketch.sampled(); ++i) {
    const SketchValue& truth = sketch.value(i, label);
    if (sketch.in_first_half(i) || truth.missing) continue;
    const Seen& seen = predictor.look_up(sketch.value(i, feature));
    ++found.tried;
    found.right += seen.most_frequent() == truth.text ? 1 : 0;
    found.most_often += guess == truth.text ? 1 : 0;
    errors += std::pow(truth.number - seen.mean(), 2);
    spread += std::pow(truth.number - predictor.all().mean(), 2);
  }
  if (!classes && spread > 0) found.explained = 1 - errors / spread;
  return found;
}

bool gives_away(const AlonePrediction& prediction, bool classes) {
  constexpr double kShare = 0.99;
  constexpr Index kMinGuessedWrong = 10;
  constexpr Index kFewer = 10;  // wrong ones than those of the guess
  if (prediction.tried < Index{kMinTried}) return false;
  if (!classes) return prediction.explained >= kShare;
  const Index wrong = prediction.tried - prediction.right;
  const Index guessed_wrong = prediction.tried - prediction.most_often;
  return guessed_wrong >= kMinGuessedWrong && kFewer * wrong <= guessed_wrong &&
         static_cast<double>(prediction.right) >= kShare * static_cast<double>(prediction.tried);
}

}  // namespace lockstep
