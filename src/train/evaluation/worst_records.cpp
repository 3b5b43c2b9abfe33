#include "lockstep/train/evaluation/worst_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {
namespace {

constexpr Index kMaxNumbers = 6;

bool is_worse(double loss, Index id, const WorstRecord& other) {
  return loss > other.loss || (loss == other.loss && id < other.id);
}

SampleWeights weight_of(const SampleWeights& weights, Index row) {
  if (weights.present.empty()) return {};
  return {.values = {}, .present = part(weights.present, {row, row + 1}), .targets = weights.targets};
}

std::string name_of(const PredictionWords& words, Index of_class) {
  const bool named = of_class < std::ssize(words.classes);
  return named ? at(words.classes, of_class) : fmt::format("{}", of_class);
}

std::string numbers(std::span<const Scalar> values) {
  std::vector<std::string> texts;
  for (Index i = 0; i < std::min(std::ssize(values), kMaxNumbers); ++i)
    texts.push_back(fmt::format("{:.5g}", at(values, i)));
  if (std::ssize(values) > kMaxNumbers) texts.emplace_back("...");
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "Shirt (97.1 %); Coat has 1.2 %"
std::string class_text(const OutputForm& form, const PredictionWords& words, std::span<const Scalar> values,
                       Index of_class) {
  const Index predicted = std::ranges::max_element(values) - values.begin();
  if (form.link == Link::kIdentity) return name_of(words, predicted);
  const auto share = [&](Index i) { return 100 * static_cast<double>(at(values, i)); };
  std::string text = fmt::format("{} ({:.1f} %)", name_of(words, predicted), share(predicted));
  if (predicted != of_class)
    text += fmt::format("; {} has {:.1f} %", name_of(words, of_class), share(of_class));
  return text;
}

// Texts of the target and of the prediction of one row.
WorstRecord describe(const OutputForm& form, const PredictionWords& words, const MetricRows& rows,
                     Index row) {
  const ConstMatrix outputs = rows_of(rows.outputs, {row, row + 1});
  const PredictionColumns columns = prediction_columns(form, outputs.cols());
  std::vector<Scalar> predicted(static_cast<std::size_t>(columns.size()));
  Matrix prediction(predicted.data(), 1, columns.size());
  predict_rows(form, outputs, prediction, words.scales);
  const std::span<const Scalar> values(predicted.data() + columns.labels,
                                       static_cast<std::size_t>(columns.values));
  const ConstMatrix target = rows_of(rows.targets, {row, row + 1});
  std::vector<Scalar> targets(target.values().begin(), target.values().end());
  if (form.targets == TargetKind::kClass) {
    const Index of_class = true_class(rows.targets, row);
    return {.target = name_of(words, of_class), .prediction = class_text(form, words, values, of_class)};
  }
  if (form.targets == TargetKind::kBinary && targets.size() == 1 && form.link == Link::kLogit) {
    return {.target = name_of(words, class_of(targets)),
            .prediction = fmt::format("{} has {:.1f} %", name_of(words, 1), 100 * values[0])};
  }
  const bool scaled = form.targets == TargetKind::kValue && !form.direction;
  for (std::size_t i = 0; scaled && i < std::min(targets.size(), words.scales.size()); ++i)
    targets[i] = words.scales[i].undo(targets[i]);
  return {.target = numbers(targets), .prediction = numbers(values)};
}

}  // namespace

bool WorstRecords::is_wanted(double loss, Index id) const {
  return records_.size() < kWorstRecords || is_worse(loss, id, records_.back());
}

void WorstRecords::add(const WorstRecord& record) {
  if (!is_wanted(record.loss, record.id)) return;
  if (records_.size() == kWorstRecords) records_.pop_back();
  const auto before = std::ranges::find_if(
      records_, [&](const WorstRecord& each) { return is_worse(record.loss, record.id, each); });
  records_.insert(before, record);
}

void WorstRecords::add(const MetricRows& rows, std::span<const Index> ids) {
  const OutputForm form = loss_.form();
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (rows.weights[row] == 0) continue;
    const Range one{row, row + 1};
    double loss = evaluate_weighted(loss_, rows_of(rows.outputs, one), rows_of(rows.targets, one),
                                    weight_of(rows.weights, row), nullptr);
    if (std::isnan(loss)) loss = std::numeric_limits<double>::infinity();
    if (!is_wanted(loss, at(ids, row))) continue;
    WorstRecord record = describe(form, words_, rows, row);
    record.loss = loss;
    record.id = at(ids, row);
    add(record);
  }
}

}  // namespace lockstep
