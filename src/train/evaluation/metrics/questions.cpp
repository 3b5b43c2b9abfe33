#include "questions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

bool Questions::truth(const ConstMatrix& targets, Index row, Index question) const {
  if (targets_ == TargetKind::kBinary) return targets(row, question) > Scalar{0.5};
  return true_class(targets, row) == (outputs_ == 2 ? 1 : question);
}

bool Questions::is_answered(const ConstMatrix& targets, Index row, Index question) const {
  return targets_ != TargetKind::kBinary || !std::isnan(targets(row, question));
}

void Questions::visit_answers(const MetricRows& rows, Index row,
                              const std::function<void(Index, bool, bool)>& visit) const {
  const Index guess = targets_ == TargetKind::kClass ? predicted_class(rows.outputs, row) : 0;
  for (Index question = 0; question < size(); ++question) {
    if (!is_answered(rows.targets, row, question)) continue;
    const bool predicted = targets_ == TargetKind::kBinary ? rows.outputs(row, question) > 0
                                                           : guess == (outputs_ == 2 ? 1 : question);
    visit(question, truth(rows.targets, row, question), predicted);
  }
}

void Questions::visit_scores(const MetricRows& rows, Index row,
                             const std::function<void(Index, bool, Scalar)>& visit) const {
  const ConstMatrix& outputs = rows.outputs;
  const bool many = targets_ == TargetKind::kClass && outputs_ != 2;
  const double log_sum = many ? log_sum_exp(outputs, row) : 0;
  for (Index question = 0; question < size(); ++question) {
    if (!is_answered(rows.targets, row, question)) continue;
    Scalar score = outputs(row, question);
    if (many) score = static_cast<Scalar>(static_cast<double>(score) - log_sum);
    if (targets_ == TargetKind::kClass && !many) score = outputs(row, 1) - outputs(row, 0);
    // The loss shows that something went wrong; here it must only not upset the sorting.
    if (std::isnan(score)) score = -std::numeric_limits<Scalar>::infinity();
    visit(question, truth(rows.targets, row, question), score);
  }
}

std::optional<double> mean_over(Index questions, const std::function<std::optional<double>(Index)>& value) {
  double sum = 0;
  Index defined = 0;
  for (Index question = 0; question < questions; ++question) {
    const std::optional<double> one = value(question);
    sum += one.value_or(0);
    defined += one ? 1 : 0;
  }
  if (defined == 0) return std::nullopt;
  return sum / static_cast<double>(defined);
}

double log_sum_exp(const ConstMatrix& outputs, Index row) {
  const Scalar* first = outputs.data() + row * outputs.cols();
  const auto largest = static_cast<double>(*std::max_element(first, first + outputs.cols()));
  double sum = 0;
  for (Index i = 0; i < outputs.cols(); ++i) sum += std::exp(static_cast<double>(first[i]) - largest);
  return largest + std::log(sum);
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

double logistic(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

double second_of_two(const ConstMatrix& outputs, Index row) {
  return logistic(static_cast<double>(outputs(row, 1)) - static_cast<double>(outputs(row, 0)));
}

}  // namespace lockstep
