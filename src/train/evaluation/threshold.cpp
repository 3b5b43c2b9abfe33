// A threshold is chosen in one pass over the samples in the order of their probabilities. Before the pass all
// samples are called yes; each one that is passed is called no. Between two neighbours of different
// probabilities lies a candidate. Weights are added in the order of the samples, which is the same however
// they were spread over ranks, and so the threshold is the same.
#include "lockstep/train/evaluation/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {
namespace {

constexpr std::array kMeasures{"f1", "balanced_accuracy", "youden"};

// Weights of the samples by what they are and what they are called.
struct Counts {
  double yes = 0;  // that are yes
  double no = 0;
  double missed = 0;    // that are yes and called no
  double rejected = 0;  // that are no and called no

  void pass(const YesSample& sample) {
    (sample.yes ? missed : rejected) += static_cast<double>(sample.weight);
  }
  double f1() const { return 2 * (yes - missed) / (2 * (yes - missed) + (no - rejected) + missed); }
  double balanced_accuracy() const { return ((yes - missed) / yes + rejected / no) / 2; }
};

Counts count(std::span<const YesSample> samples) {
  Counts counts;
  for (const YesSample& sample : samples) {
    (sample.yes ? counts.yes : counts.no) += static_cast<double>(sample.weight);
  }
  return counts;
}

bool is_nearer_to_half(double threshold, double other) {
  const double distance = std::abs(threshold - 0.5);
  const double others = std::abs(other - 0.5);
  return distance < others || (distance == others && threshold < other);
}

void append_samples(std::vector<YesSample>& samples, const MetricRows& rows, const OutputForm& form) {
  const Index columns = prediction_columns(form, rows.outputs.cols()).size();
  std::vector<Scalar> values(static_cast<std::size_t>(rows.outputs.rows() * columns));
  Matrix predictions(values.data(), rows.outputs.rows(), columns);
  predict_rows(form, rows.outputs, predictions);
  for (Index row = 0; row < predictions.rows(); ++row) {
    if (rows.weights[row] == 0) continue;
    const Scalar probability = predictions(row, columns - 1);
    const bool yes = form.targets == TargetKind::kClass ? true_class(rows.targets, row) == 1
                                                        : rows.targets(row, 0) > Scalar{0.5};
    samples.push_back({.probability = std::isnan(probability) ? Scalar{-1} : probability,
                       .yes = yes,
                       .weight = static_cast<Scalar>(rows.weights[row])});
  }
}

}  // namespace

ThresholdRule parse_threshold(std::string_view key, std::string_view text) {
  if (text.empty()) return {};
  if (std::ranges::find(kMeasures, text) != kMeasures.end()) return {.measure = std::string(text)};
  const std::optional<double> number = parse_number(text);
  if (number && *number >= 0 && *number <= 1) return {.number = number};
  throw ConfigError(
      fmt::format("{}: expected \"f1\", \"balanced_accuracy\", \"youden\" or a number from 0 to 1, found {}",
                  key, in_quotes(text)));
}

bool has_yes(const OutputForm& form, Index outputs) {
  return form.link == Link::kLogit || (form.link == Link::kSoftmax && outputs == 2);
}

bool has_one_yes(const OutputForm& form, Index outputs) {
  return has_yes(form, outputs) && outputs == (form.link == Link::kLogit ? 1 : 2);
}

std::vector<YesSample> gather_yes(Communicator& comm, Evaluation& evaluation, const ModelValues& values,
                                  const OutputForm& form) {
  std::vector<std::vector<YesSample>> of_threads(static_cast<std::size_t>(evaluation.threads()));
  evaluation.visit(values, [&](int thread, const MetricRows& rows, std::span<const Index>) {
    append_samples(at(of_threads, thread), rows, form);
  });
  std::vector<YesSample> samples;
  for (const std::vector<YesSample>& some : of_threads)
    samples.insert(samples.end(), some.begin(), some.end());
  samples = gather_records<YesSample>(comm, samples);
  std::ranges::sort(samples);
  return samples;
}

std::optional<ChosenThreshold> choose_threshold(const std::string& measure,
                                                std::span<const YesSample> samples) {
  Counts counts = count(samples);
  const bool is_f1 = measure == "f1";
  if (!(counts.yes > 0) || (!is_f1 && !(counts.no > 0))) return std::nullopt;
  std::optional<ChosenThreshold> best;
  double below = 0;  // the probability of the sample before
  for (const YesSample& sample : samples) {
    const auto probability = static_cast<double>(sample.probability);
    const bool candidate = !best || probability > below;
    if (probability >= 0 && candidate) {
      const double threshold = (below + probability) / 2;
      const double value = is_f1 ? counts.f1() : counts.balanced_accuracy();
      if (!best || value > best->value ||
          (value == best->value && is_nearer_to_half(threshold, best->threshold))) {
        best = {.threshold = threshold, .measure = measure, .value = value};
      }
      below = probability;
    }
    counts.pass(sample);
  }
  if (best && measure == "youden") best->value = 2 * best->value - 1;
  return best;
}

double accuracy_at(double threshold, std::span<const YesSample> samples) {
  double right = 0;
  double all = 0;
  for (const YesSample& sample : samples) {
    const auto weight = static_cast<double>(sample.weight);
    right += (static_cast<double>(sample.probability) >= threshold) == sample.yes ? weight : 0;
    all += weight;
  }
  return right / all;
}

}  // namespace lockstep
