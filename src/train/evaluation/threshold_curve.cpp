// The score of a class is the logarithm of its odds: the output of a logit, or log(p / (1 - p)) of a softmax,
// which is computed from the outputs so that probabilities near 0 and 1 stay apart. Bins are even in it.
#include "lockstep/train/evaluation/threshold_curve.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/math/elementary.h"
#include "train/evaluation/metrics/questions.h"

namespace lockstep {
namespace {

constexpr Index kBins = 16384;
constexpr double kLargestScore = 16;  // a probability of 1 - 10^-7

Index curves_of(const OutputForm& form, Index outputs) {
  if (form.targets == TargetKind::kValue || outputs > kMaxCurves) return 0;
  return Questions(form.targets, outputs).size();
}

// How far a class lies above all others together or, without probabilities, above the next.
double score_of_class(const OutputForm& form, const ConstMatrix& outputs, Index row, Index of_class) {
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

double threshold_of(const OutputForm& form, Index bin) {
  const double score =
      kLargestScore * (2 * static_cast<double>(bin) / static_cast<double>(kBins) - 1);  // its lower end
  if (form.link == Link::kIdentity) return score;
  return static_cast<double>(sigmoid(static_cast<Scalar>(score)));
}

}  // namespace

double ThresholdCurve::area() const {
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  double area = 0;
  Index before = 0;
  Index false_before = 0;
  for (const ThresholdPoint& point : points) {
    area += static_cast<double>(point.false_positives - false_before) *
            static_cast<double>(point.true_positives + before) / 2;
    before = point.true_positives;
    false_before = point.false_positives;
  }
  return area / (static_cast<double>(positives) * static_cast<double>(negatives));
}

ThresholdCounts::ThresholdCounts(const OutputForm& form, Index outputs)
    : form_(form),
      outputs_(outputs),
      first_class_(outputs == (form.targets == TargetKind::kClass ? 2 : 1) ? 1 : 0),
      curves_(curves_of(form, outputs)),
      counts_(static_cast<std::size_t>(2 * curves_ * kBins)) {}

void ThresholdCounts::count(Index curve, double score, bool positive) {
  if (std::isnan(score)) return;
  const double place = (score / kLargestScore + 1) / 2 * static_cast<double>(kBins);
  const auto bin = static_cast<Index>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)));
  ++at(counts_, (2 * curve + (positive ? 1 : 0)) * kBins + bin);
}

void ThresholdCounts::add(const MetricRows& rows) {
  if (curves_ == 0) return;
  const Questions questions(form_.targets, outputs_);
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (rows.weights[row] == 0) continue;
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
}

std::vector<ThresholdCurve> ThresholdCounts::curves(Communicator& comm) {
  if (curves_ == 0) return {};
  comm.all_reduce_sum(as_buffer(std::span(counts_)));
  std::vector<ThresholdCurve> curves;
  for (Index i = 0; i < curves_; ++i) {
    ThresholdCurve curve{.of_class = first_class_ + i};
    for (Index bin = kBins - 1; bin >= 0; --bin) {
      const Index negatives = at(counts_, 2 * i * kBins + bin);
      const Index positives = at(counts_, (2 * i + 1) * kBins + bin);
      if (negatives + positives == 0) continue;
      curve.positives += positives;
      curve.negatives += negatives;
      curve.points.push_back({threshold_of(form_, bin), curve.positives, curve.negatives});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace lockstep
