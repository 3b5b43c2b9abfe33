#include "rows.h"

namespace lockstep {
namespace {

// Metrics of what a model says, from weighted counts of each question: how often it is so, how often the
// model says so, and how often both.

// Sums of weights for each question: of all samples, of those that it is true of, that the model says so of,
// and both; of those that it is not true of, and of these the ones that the model does not say so of.
enum AnswerColumn : std::size_t { kAll, kTrue, kSaid, kBoth, kFalse, kRejected, kAnswerColumns };

// The value of a metric of the sums of all questions.
using ValueOfAnswers = std::optional<double> (*)(const Questions& questions, std::span<const double> sums);

template <ValueOfAnswers kValue>
Metric make_of_answers(const OutputForm& form, Index outputs) {
  const Questions questions(form, outputs);
  return {.needs = {.sums = questions.size() * Index{kAnswerColumns}},
          .collect =
              [questions](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  const double weight = rows.weights[row];
                  questions.visit_answers(rows, row, [&](Index question, bool truth, bool guess) {
                    double* sums = parts.sums.data() + question * Index{kAnswerColumns};
                    sums[kAll] += weight;
                    sums[truth ? kTrue : kFalse] += weight;
                    if (guess) sums[kSaid] += weight;
                    if (truth == guess) sums[truth ? kBoth : kRejected] += weight;
                  });
                }
              },
          .value = [questions](const MetricTotals& totals) { return kValue(questions, totals.sums); }};
}

// The mean over the questions of kOfQuestion(sums of one).
template <auto kOfQuestion>
std::optional<double> mean_answer(const Questions& questions, std::span<const double> sums) {
  return mean_over(questions.size(), [&](Index question) {
    return kOfQuestion(sums.data() + question * Index{kAnswerColumns});
  });
}

// The true positives by a divisor, 0 where that is 0. A question that is neither true of any sample nor said
// of any does not count (scikit-learn's rule for classes, with zero_division=0).
std::optional<double> share_of_hits(const double* sums, double divisor) {
  if (sums[kTrue] == 0 && sums[kSaid] == 0) return std::nullopt;
  return divisor == 0 ? 0 : sums[kBoth] / divisor;
}

std::optional<double> precision(const double* sums) {
  return share_of_hits(sums, sums[kSaid]);
}

std::optional<double> recall(const double* sums) {
  return share_of_hits(sums, sums[kTrue]);
}

// F1, the harmonic mean of precision and recall, is the true positives by the mean of the two others.
std::optional<double> f1(const double* sums) {
  return share_of_hits(sums, (sums[kTrue] + sums[kSaid]) / 2);
}

// A class that no sample is of does not count (scikit-learn's rule).
std::optional<double> share_recognised(double recognised, double all) {
  if (all == 0) return std::nullopt;
  return recognised / all;
}

std::optional<double> recognised_class(const double* sums) {
  return share_recognised(sums[kBoth], sums[kTrue]);
}

std::optional<double> recognised_classes(const double* sums) {
  return mean_over(2, [&](Index no) {
    return no == 0 ? recognised_class(sums) : share_recognised(sums[kRejected], sums[kFalse]);
  });
}

std::optional<double> balanced_accuracy_of(const Questions& questions, std::span<const double> sums) {
  return questions.counts_no() ? mean_answer<recognised_classes>(questions, sums)
                               : mean_answer<recognised_class>(questions, sums);
}

// The correlation of two answers of several classes (Gorodkin 2004), from what they have in common.
double correlation(double common, double truth, double guesses) {
  const double spread = std::sqrt(truth) * std::sqrt(guesses);
  return spread > 0 ? common / spread : 0;
}

std::optional<double> correlation_of_one(const double* sums) {
  if (sums[kAll] == 0) return std::nullopt;
  return correlation(sums[kBoth] * sums[kAll] - sums[kTrue] * sums[kSaid],
                     sums[kTrue] * (sums[kAll] - sums[kTrue]), sums[kSaid] * (sums[kAll] - sums[kSaid]));
}

// One of several classes is right: then the questions are one answer.
std::optional<double> mcc_of(const Questions& questions, std::span<const double> totals) {
  if (questions.counts_no()) return mean_answer<correlation_of_one>(questions, totals);
  const double all = totals[kAll];
  double right = 0;
  double common = 0;
  double truth = all * all;
  double guesses = all * all;
  for (Index question = 0; question < questions.size(); ++question) {
    const double* sums = totals.data() + question * Index{kAnswerColumns};
    right += sums[kBoth];
    common += sums[kTrue] * sums[kSaid];
    truth -= sums[kTrue] * sums[kTrue];
    guesses -= sums[kSaid] * sums[kSaid];
  }
  return correlation(right * all - common, truth, guesses);
}

// Metrics of how samples are ordered by their scores.

Metric make_auc(const OutputForm& form, Index outputs) {
  const Questions questions(form, outputs);
  return {.needs = {.rankings = questions.size()},
          .collect =
              [questions](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  questions.visit_scores(rows, row, [&](Index question, bool truth, Scalar score) {
                    Scores& scores = at(parts.scores, question);
                    (truth ? scores.positives : scores.negatives).push_back(score);
                    if (!rows.weights.given()) return;
                    const Scalar weight = at(rows.weights.values, row);
                    (truth ? scores.positive_weights : scores.negative_weights).push_back(weight);
                  });
                }
              },
          .value =
              [](const MetricTotals& totals) {
                return mean_over(std::ssize(totals.rankings), [&](Index question) -> std::optional<double> {
                  const RankedPairs& ranked = at(totals.rankings, question);
                  if (ranked.positives == 0 || ranked.negatives == 0) return std::nullopt;
                  return ranked.twice_above / (2 * (ranked.positives * ranked.negatives));
                });
              }};
}

// From the highest score down, each group of equal scores adds its share of the positives, times the
// precision of all samples so far.
std::optional<double> average_precision(std::span<const ScoredSample> samples) {
  double positives = 0;
  for (const ScoredSample& sample : samples) positives += sample.target > 0 ? double{sample.weight} : 0;
  if (positives == 0) return std::nullopt;
  double sum = 0;
  double hits = 0;
  double all = 0;
  for (std::size_t end = samples.size(); end > 0;) {
    const Scalar score = samples[end - 1].score;
    double of_group = 0;
    for (; end > 0 && samples[end - 1].score == score; --end) {
      const auto weight = static_cast<double>(samples[end - 1].weight);
      of_group += samples[end - 1].target > 0 ? weight : 0;
      all += weight;
    }
    hits += of_group;
    if (of_group > 0) sum += of_group * (hits / all);
  }
  return sum / positives;
}

Metric make_average_precision(const OutputForm& form, Index outputs) {
  const Questions questions(form, outputs);
  return mean_over_sets(
      questions.size(),
      [questions](const MetricRows& rows, Index row, const auto& add) {
        questions.visit_scores(rows, row, [&](Index question, bool truth, Scalar score) {
          add(question, score, truth ? Scalar{1} : Scalar{0});
        });
      },
      average_precision);
}

}  // namespace

std::vector<MetricEntry> answer_metrics() {
  const std::vector<TargetKind> classes{TargetKind::kClass, TargetKind::kBinary};
  return {
      {.name = "precision",
       .help =
           "Of the samples that the model calls positive, the share that are. With two classes the second "
           "(data.positive) is positive; several classes or outputs: the mean over them (macro)",
       .targets = classes,
       .smaller_is_better = false,
       .make = make_of_answers<mean_answer<precision>>,
       .of_positive = true},
      {.name = "recall",
       .help = "Of the positive samples, the share that the model calls so. With two classes the second "
               "(data.positive) is positive; several classes or outputs: the mean over them (macro)",
       .targets = classes,
       .smaller_is_better = false,
       .make = make_of_answers<mean_answer<recall>>,
       .of_positive = true},
      {.name = "f1",
       .help = "2 precision * recall / (precision + recall) of a class (F1). With two classes the second "
               "(data.positive) is positive; several classes or outputs: the mean over them (macro)",
       .targets = classes,
       .smaller_is_better = false,
       .make = make_of_answers<mean_answer<f1>>,
       .by_name = true,
       .of_positive = true},
      {.name = "mcc",
       .help = "Correlation of the true and the predicted classes (Matthews 1975; several classes: Gorodkin "
               "2004): 1 is perfect, 0 no better than chance or always one class, -1 all wrong. Several "
               "outputs: the mean over them",
       .targets = classes,
       .smaller_is_better = false,
       .make = make_of_answers<mcc_of>,
       .by_name = true},
      {.name = "balanced_accuracy",
       .help = "The mean over the classes of the share of their samples that are recognised, so that each "
               "class counts alike. Several outputs: the mean over them",
       .targets = classes,
       .smaller_is_better = false,
       .make = make_of_answers<balanced_accuracy_of>,
       .by_name = true}};
}

std::vector<MetricEntry> score_metrics() {
  return {
      {.name = "auc",
       .help =
           "Area under the ROC curve: the share of all pairs of a positive and a negative sample in which "
           "the positive has the higher output, half of those with equal ones counted (Mann & Whitney "
           "1947); exact, for 4 bytes a sample (with weights 12, and all on one rank). Several classes or "
           "outputs: the mean over each against the rest",
       .targets = {TargetKind::kClass, TargetKind::kBinary},
       .smaller_is_better = false,
       .make = make_auc},
      {.name = "average_precision",
       .help = "Area under the precision-recall curve: the mean over the positive samples of the precision "
               "among all whose output is as high or higher (scikit-learn's); exact, for 12 bytes a sample, "
               "all on one rank. Several classes or outputs: the mean over each against the rest",
       .targets = {TargetKind::kClass, TargetKind::kBinary},
       .smaller_is_better = false,
       .make = make_average_precision,
       .by_name = true,
       .of_positive = true}};
}

}  // namespace lockstep
