// The parts that metrics share: how they go through the rows of a block, and the means that they take.
// Classification is a matter of yes-or-no questions, which AUC, precision and recall are defined for: with
// binary targets one for each output, with two classes one (is it class 1?), with more classes one for each
// of them.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

// Probabilities and their logarithms, in double and without overflow.

/// log(sum of e^output) over the outputs of one row: what softmax divides by.
double log_sum_exp(const ConstMatrix& outputs, Index row);

/// log(1 + e^x).
double softplus(double x);

/// 1 / (1 + e^-x).
double logistic(double x);

/// The probability that softmax gives the second of two classes.
double second_of_two(const ConstMatrix& outputs, Index row);

/// Minus infinity for what is not a number. The loss shows that something went wrong; a score must only not
/// upset the sorting.
inline Scalar sortable(Scalar score) {
  return std::isnan(score) ? -std::numeric_limits<Scalar>::infinity() : score;
}

class Questions {
 public:
  /// `form`: of kClass or kBinary targets.
  Questions(const OutputForm& form, Index outputs)
      : targets_(form.targets), outputs_(outputs), has_logarithms_(form.link == Link::kSoftmax) {}

  Index size() const { return of_two_classes() ? 1 : outputs_; }
  /// Whether no is a class, too, which no other question asks for.
  bool counts_no() const { return targets_ == TargetKind::kBinary || outputs_ == 2; }

  /// Whether the target of a question is there.
  bool is_answered(const ConstMatrix& targets, Index row, Index question) const {
    return targets_ != TargetKind::kBinary || !std::isnan(targets(row, question));
  }
  /// The true answer, of a question whose target is there.
  bool truth(const ConstMatrix& targets, Index row, Index question) const {
    if (targets_ == TargetKind::kBinary) return targets(row, question) > Scalar{0.5};
    return true_class(targets, row) == class_of_question(question);
  }

  /// Calls visit(question, is it so, whether the model predicts it) for each question about one row
  /// whose target is there.
  template <class Visit>
  void visit_answers(const MetricRows& rows, Index row, const Visit& visit) const {
    const bool binary = targets_ == TargetKind::kBinary;
    const Index guess = binary ? 0 : predicted_class(rows.outputs, row);
    for (Index question = 0; question < size(); ++question) {
      if (!is_answered(rows.targets, row, question)) continue;
      const bool said = binary ? rows.outputs(row, question) > 0 : guess == class_of_question(question);
      visit(question, truth(rows.targets, row, question), said);
    }
  }

  /// Likewise calls visit(question, is it so, score), with a score that rises with the probability that the
  /// model gives: for binary targets the output, for two classes the difference of the outputs (both are its
  /// log-odds), for more its logarithm or, without probabilities, the output.
  template <class Visit>
  void visit_scores(const MetricRows& rows, Index row, const Visit& visit) const {
    const ConstMatrix& outputs = rows.outputs;
    const bool many = targets_ == TargetKind::kClass && outputs_ != 2 && has_logarithms_;
    const double log_sum = many ? log_sum_exp(outputs, row) : 0;
    for (Index question = 0; question < size(); ++question) {
      if (!is_answered(rows.targets, row, question)) continue;
      Scalar score = outputs(row, question);
      if (many) score = static_cast<Scalar>(static_cast<double>(score) - log_sum);
      if (of_two_classes()) score = outputs(row, 1) - outputs(row, 0);
      visit(question, truth(rows.targets, row, question), sortable(score));
    }
  }

 private:
  bool of_two_classes() const { return targets_ == TargetKind::kClass && outputs_ == 2; }
  Index class_of_question(Index question) const { return of_two_classes() ? 1 : question; }

  TargetKind targets_;
  Index outputs_;
  bool has_logarithms_;  // outputs are logarithms of probabilities, up to a constant
};

/// Calls visit(i, output, target) for each output of one row whose target is there, as the model has them.
/// Several outputs may be predictions of one target.
template <class Visit>
void visit_outputs(const MetricRows& rows, Index row, const Visit& visit) {
  const Index per_target = rows.outputs.cols() / rows.targets.cols();
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const Scalar target = rows.targets(row, i / per_target);
    if (!std::isnan(target)) visit(i, rows.outputs(row, i), static_cast<double>(target));
  }
}

/// The mean of value(i) over those i below `count` for which it gives one; nothing if there is none.
template <class Value>
std::optional<double> mean_over(Index count, const Value& value) {
  double sum = 0;
  Index defined = 0;
  for (Index i = 0; i < count; ++i) {
    const std::optional<double> one = value(i);
    sum += one.value_or(0);
    defined += one ? 1 : 0;
  }
  if (defined == 0) return std::nullopt;
  return sum / static_cast<double>(defined);
}

/// The mean over some sets of samples of of_set(the samples of one), which visit(rows, row, add) tells of by
/// add(set, score, target).
template <class Visit, class OfSet>
Metric mean_over_sets(Index sets, const Visit& visit, const OfSet& of_set) {
  return {.needs = {.samples = sets},
          .collect =
              [visit](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  const auto weight = static_cast<Scalar>(rows.weights[row]);
                  visit(rows, row, [&](Index set, Scalar score, Scalar target) {
                    at(parts.samples, set).push_back({.score = score, .target = target, .weight = weight});
                  });
                }
              },
          .value =
              [of_set](const MetricTotals& totals) {
                return mean_over(std::ssize(totals.samples),
                                 [&](Index set) { return of_set(at(totals.samples, set)); });
              }};
}

/// The mean over the samples of a sum that `add` makes of each block.
template <class Add>
Metric mean_of_sums(Add add) {
  return {.needs = {.sums = 1},
          .collect = [add = std::move(add)](const MetricRows& rows,
                                            const MetricParts& parts) { parts.sums[0] += add(rows); },
          .value = [](const MetricTotals& totals) { return std::optional(totals.sums[0] / totals.weight); }};
}

/// The mean over the samples of of_row(rows, row).
template <class OfRow>
Metric mean_over_samples(OfRow of_row) {
  return mean_of_sums([of_row = std::move(of_row)](const MetricRows& rows) {
    double sum = 0;
    for (Index row = 0; row < rows.outputs.rows(); ++row) sum += rows.weights[row] * of_row(rows, row);
    return sum;
  });
}

}  // namespace lockstep
