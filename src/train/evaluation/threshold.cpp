// A threshold is chosen in one pass over the samples in the order of their probabilities. Before the pass all
// samples are called yes; each one that is passed is called no. Between two neighbours of different
// probabilities lies a candidate. Weights are added in the order of the samples, which is the same however
// they were spread over ranks, and so the threshold is the same.
#include "lockstep/train/evaluation/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/math/elementary.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/prediction.h"
#include "train/evaluation/metrics/rows.h"

namespace lockstep {
namespace {

constexpr std::array kMeasures{"f1", "balanced_accuracy", "youden"};

// Weights of the samples by what they are and what they are called.
struct Counts {
  double yes = 0;  // that are yes
  double no = 0;
  double missed = 0;    // that are yes and called no
  double rejected = 0;  // that are no and called no

  void pass(const ScoredSample& sample) {
    (sample.target > 0 ? missed : rejected) += static_cast<double>(sample.weight);
  }
  double f1() const { return 2 * (yes - missed) / (2 * (yes - missed) + (no - rejected) + missed); }
  double balanced_accuracy() const { return ((yes - missed) / yes + rejected / no) / 2; }
};

Counts count(std::span<const ScoredSample> samples) {
  Counts counts;
  for (const ScoredSample& sample : samples) {
    (sample.target > 0 ? counts.yes : counts.no) += static_cast<double>(sample.weight);
  }
  return counts;
}

// Numbers that differ by rounding only are equal: 1/4 + 19/20 and 2/4 + 14/20 are not as doubles.
constexpr double kRounding = 1e-12;

bool is_nearer_to_half(double threshold, double other) {
  const double nearer = std::abs(other - 0.5) - std::abs(threshold - 0.5);
  return nearer > kRounding || (nearer > -kRounding && threshold < other);
}

void append_samples(ScoredSamples& samples, const MetricRows& rows, const OutputForm& form) {
  const Index columns = prediction_columns(form, rows.outputs.cols()).size();
  std::vector<Scalar> values(static_cast<std::size_t>(rows.outputs.rows() * columns));
  Matrix predictions(values.data(), rows.outputs.rows(), columns);
  predict_rows(form, rows.outputs, predictions);
  for (Index row = 0; row < predictions.rows(); ++row) {
    if (rows.weights[row] == 0) continue;
    const Scalar probability = predictions(row, columns - 1);
    const bool yes = form.targets == TargetKind::kClass ? true_class(rows.targets, row) == 1
                                                        : rows.targets(row, 0) > Scalar{0.5};
    samples.push_back({.score = std::isnan(probability) ? Scalar{-1} : probability,
                       .target = yes ? Scalar{1} : Scalar{0},
                       .weight = static_cast<Scalar>(rows.weights[row])});
  }
}

// The score of a class is the logarithm of its odds: the output of a logit, or log(p / (1 - p)) of a softmax,
// which is computed from the outputs so that probabilities near 0 and 1 stay apart. Bins are even in it.

constexpr Index kBins = 16384;
constexpr double kLargestScore = 16;  // a probability of 1 - 10^-7

Index curves_of(const OutputForm& form, Index outputs) {
  if (form.targets == TargetKind::kValue || outputs > kMaxCurves) return 0;
  return Questions(form, outputs).size();
}

// How far a class lies above all others together or, without probabilities, above the other of two; of more
// its output.
double score_of_class(const OutputForm& form, const ConstMatrix& outputs, Index row, Index of_class) {
  if (form.link != Link::kSoftmax && outputs.cols() > 2) return static_cast<double>(outputs(row, of_class));
  Scalar largest = -std::numeric_limits<Scalar>::infinity();
  for (Index i = 0; i < outputs.cols(); ++i) {
    if (i != of_class) largest = std::max(largest, outputs(row, i));
  }
  const auto above = static_cast<double>(outputs(row, of_class)) - static_cast<double>(largest);
  if (form.link != Link::kSoftmax) return above;
  double sum = 0;
  for (Index i = 0; i < outputs.cols(); ++i) {
    if (i != of_class) sum += static_cast<double>(exp_nonpositive(outputs(row, i) - largest));
  }
  return above - static_cast<double>(logarithm(static_cast<Scalar>(sum)));
}

double threshold_of(const OutputForm& form, Scalar score) {
  return static_cast<double>(form.link == Link::kIdentity ? score : sigmoid(score));
}

}  // namespace

ThresholdRule parse_threshold(std::string_view key, std::string_view text) {
  if (text.empty()) return {};
  if (std::ranges::find(kMeasures, text) != kMeasures.end()) return {.measure = std::string(text)};
  const std::optional<double> number = parse_number(text);
  if (number && *number >= 0 && *number <= 1) return {.number = number};
  throw ConfigError(
      "{}: expected \"f1\", \"balanced_accuracy\", \"youden\" or a number from 0 to 1, found {}", key,
      in_quotes(text));
}

bool has_yes(const OutputForm& form, Index outputs) {
  return form.link == Link::kLogit || (form.link == Link::kSoftmax && outputs == 2);
}

bool has_one_yes(const OutputForm& form, Index outputs) {
  return has_yes(form, outputs) && outputs == (form.link == Link::kLogit ? 1 : 2);
}

ScoredSamples gather_yes(Communicator& comm, Evaluation& evaluation, const ModelValues& values,
                         const OutputForm& form) {
  std::vector<ScoredSamples> of_threads(static_cast<std::size_t>(evaluation.threads()));
  evaluation.visit(values, [&](int thread, const MetricRows& rows, std::span<const Index>) {
    append_samples(at(of_threads, thread), rows, form);
  });
  ScoredSamples samples;
  for (const ScoredSamples& some : of_threads) samples.insert(samples.end(), some.begin(), some.end());
  return gather_samples(comm, samples);
}

std::optional<ChosenThreshold> choose_threshold(const std::string& measure,
                                                std::span<const ScoredSample> samples) {
  Counts counts = count(samples);
  const bool is_f1 = measure == "f1";
  if (!(counts.yes > 0) || (!is_f1 && !(counts.no > 0))) return std::nullopt;
  std::optional<ChosenThreshold> best;
  double below = 0;  // the probability of the sample before
  for (const ScoredSample& sample : samples) {
    const auto probability = static_cast<double>(sample.score);
    const bool candidate = !best || probability > below;
    if (probability >= 0 && candidate) {
      const double threshold = (below + probability) / 2;
      const double value = is_f1 ? counts.f1() : counts.balanced_accuracy();
      if (!best || value > best->value + kRounding ||
          (value > best->value - kRounding && is_nearer_to_half(threshold, best->threshold))) {
        best = {.threshold = threshold, .measure = measure, .value = value};
      }
      below = probability;
    }
    counts.pass(sample);
  }
  if (best && measure == "youden") best->value = 2 * best->value - 1;
  return best;
}

ThresholdAnswers answers_at(double threshold, std::span<const ScoredSample> samples) {
  ThresholdAnswers answers{.threshold = threshold, .confusion = std::vector<Index>(4)};
  double weights[2][2] = {};  // by truth and by what is said
  for (const ScoredSample& sample : samples) {
    const int said = static_cast<double>(sample.score) >= threshold ? 1 : 0;
    const int truth = sample.target > 0 ? 1 : 0;
    weights[truth][said] += static_cast<double>(sample.weight);
    ++at(answers.confusion, 2 * truth + said);
  }
  const auto& [no, yes] = weights;
  answers.accuracy = (no[0] + yes[1]) / (no[0] + no[1] + yes[0] + yes[1]);
  answers.precision = yes[1] / (yes[1] + no[1]);
  answers.recall = yes[1] / (yes[0] + yes[1]);
  answers.f1 = 2 * yes[1] / (2 * yes[1] + no[1] + yes[0]);
  return answers;
}

std::string ThresholdAnswers::describe(const std::string& positive) const {
  std::string text =
      fmt::format("with yes{} from a probability of {:.5g} on: accuracy {:.5g}",
                  positive.empty() ? "" : fmt::format(" ({})", in_quotes(positive)), threshold, accuracy);
  for (const auto& [name, value] : {std::pair("precision", precision), {"recall", recall}, {"f1", f1}})
    text += std::isnan(value) ? fmt::format(", {} undefined", name) : fmt::format(", {} {:.5g}", name, value);
  return text;
}

ThresholdCounts::ThresholdCounts(const OutputForm& form, Index outputs)
    : form_(form),
      outputs_(outputs),
      first_class_(outputs == (form.targets == TargetKind::kClass ? 2 : 1) ? 1 : 0),
      curves_(curves_of(form, outputs)),
      counts_(static_cast<std::size_t>(2 * curves_ * kBins)),
      least_(static_cast<std::size_t>(curves_ * kBins), std::numeric_limits<Scalar>::infinity()),
      scores_(static_cast<std::size_t>(curves_)) {}

void ThresholdCounts::count(Index curve, double exact, bool positive) {
  if (std::isnan(exact)) return;
  const auto score = static_cast<Scalar>(exact);
  const double place = (static_cast<double>(score) / kLargestScore + 1) / 2 * static_cast<double>(kBins);
  const auto bin = static_cast<Index>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)));
  ++at(counts_, (2 * curve + (positive ? 1 : 0)) * kBins + bin);
  Scalar& least = at(least_, curve * kBins + bin);
  least = std::min(least, score);
  Scores& scores = at(scores_, curve);
  (positive ? scores.positives : scores.negatives).push_back(score);
}

void ThresholdCounts::add(const MetricRows& rows) {
  if (curves_ == 0) return;
  const Questions questions(form_, outputs_);
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    for (Index curve = 0; curve < curves_; ++curve) {
      if (!questions.is_answered(rows.targets, row, curve)) continue;
      const double score = form_.targets == TargetKind::kClass
                               ? score_of_class(form_, rows.outputs, row, first_class_ + curve)
                               : static_cast<double>(rows.outputs(row, curve));
      count(curve, score, questions.truth(rows.targets, row, curve));
    }
  }
}

void ThresholdCounts::add(const ThresholdCounts& other) {
  std::ranges::transform(counts_, other.counts_, counts_.begin(), std::plus<>());
  std::ranges::transform(least_, other.least_, least_.begin(),
                         [](Scalar a, Scalar b) { return std::min(a, b); });
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    const Scores& more = other.scores_[i];
    scores_[i].positives.insert(scores_[i].positives.end(), more.positives.begin(), more.positives.end());
    scores_[i].negatives.insert(scores_[i].negatives.end(), more.negatives.begin(), more.negatives.end());
  }
}

std::vector<ThresholdCurve> ThresholdCounts::curves(Communicator& comm) {
  if (curves_ == 0) return {};
  comm.all_reduce_sum(as_buffer(std::span(counts_)));
  const std::vector<Scalar> of_ranks = gather_records<Scalar>(comm, least_);  // on rank 0
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    Scalar& least = least_[i % least_.size()];
    least = std::min(least, of_ranks[i]);
  }
  std::vector<ThresholdCurve> curves;
  for (Index i = 0; i < curves_; ++i) {
    ThresholdCurve curve{.of_class = first_class_ + i};
    for (Index bin = kBins - 1; bin >= 0; --bin) {
      const Index negatives = at(counts_, 2 * i * kBins + bin);
      const Index positives = at(counts_, (2 * i + 1) * kBins + bin);
      if (negatives + positives == 0) continue;
      curve.positives += positives;
      curve.negatives += negatives;
      curve.points.push_back(
          {threshold_of(form_, at(least_, i * kBins + bin)), curve.positives, curve.negatives});
    }
    const RankedPairs ranked = rank_pairs(comm, at(scores_, i));
    curve.area = ranked.twice_above / (2 * (ranked.positives * ranked.negatives));
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace lockstep
