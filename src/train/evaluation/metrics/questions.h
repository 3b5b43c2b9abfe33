// Classification as yes-or-no questions, which AUC, precision and recall are defined for: with binary targets
// one for each output, with two classes one (is it class 1?), with more classes one for each of them.
#pragma once

#include <functional>
#include <optional>

#include "lockstep/math/matrix.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

class Questions {
 public:
  /// `targets`: kClass or kBinary.
  Questions(TargetKind targets, Index outputs) : targets_(targets), outputs_(outputs) {}

  Index size() const { return targets_ == TargetKind::kClass && outputs_ == 2 ? 1 : outputs_; }

  /// Whether the target of a question is there.
  bool is_answered(const ConstMatrix& targets, Index row, Index question) const;
  /// The true answer, of a question whose target is there.
  bool truth(const ConstMatrix& targets, Index row, Index question) const;

  /// Calls visit(question, is it so, whether the model predicts it) for each question about one row
  /// whose target is there.
  void visit_answers(const MetricRows& rows, Index row,
                     const std::function<void(Index question, bool truth, bool guess)>& visit) const;

  /// Likewise calls visit(question, is it so, score), with a score that rises with the probability that the
  /// model gives: for binary targets the output, for two classes the difference of the outputs (both are its
  /// log-odds), for more its logarithm. A score that is not a number becomes the lowest.
  void visit_scores(const MetricRows& rows, Index row,
                    const std::function<void(Index question, bool truth, Scalar score)>& visit) const;

 private:
  TargetKind targets_;
  Index outputs_;
};

/// The mean over the questions for which `value` gives one; nothing if there is none.
std::optional<double> mean_over(Index questions, const std::function<std::optional<double>(Index)>& value);

// Probabilities and their logarithms, in double and without overflow.

/// log(sum of e^output) over the outputs of one row: what softmax divides by.
double log_sum_exp(const ConstMatrix& outputs, Index row);

/// log(1 + e^x).
double softplus(double x);

/// 1 / (1 + e^-x).
double logistic(double x);

/// The probability that softmax gives the second of two classes.
double second_of_two(const ConstMatrix& outputs, Index row);

}  // namespace lockstep
