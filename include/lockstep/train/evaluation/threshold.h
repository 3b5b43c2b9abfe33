// The probability from which on a model of one yes or no says yes, as a number or as the one that is best by
// a measure on a set of samples.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

class Evaluation;
struct ModelValues;

/// A threshold as eval.threshold names it: a number, or the measure by which it is chosen; neither: none.
struct ThresholdRule {
  std::optional<double> number = {};
  std::string measure = {};  ///< "f1", "balanced_accuracy", "youden"
};

/// "" names none. Errors: ConfigError naming `key` for what is neither a measure nor a number from 0 to 1.
ThresholdRule parse_threshold(std::string_view key, std::string_view text);

/// Whether the outputs are the probability of one yes: of a binary target, or of the second of two classes.
bool has_one_yes(const OutputForm& form, Index outputs);
/// Whether they are probabilities of yes for each of one or several targets.
bool has_yes(const OutputForm& form, Index outputs);

/// *Collective, blocking.* All samples of the set of `evaluation`, whose outputs satisfy has_one_yes, sorted,
/// on rank 0; nothing elsewhere. A score is the probability that the model gives to yes, -1 where it is not a
/// number; the target is 1 for yes and 0 for no. They are the same for any number of ranks and threads; see
/// gather_samples().
ScoredSamples gather_yes(Communicator& comm, Evaluation& evaluation, const ModelValues& values,
                         const OutputForm& form);

struct ChosenThreshold {
  double threshold = 0;
  std::string measure = {};  ///< "": it was not chosen
  double value = 0;          ///< of the measure, at the threshold
};

/// The threshold with the largest value of a measure over samples that are sorted:
///   f1                 2 TP / (2 TP + FP + FN)
///   balanced_accuracy  (TP / P + TN / N) / 2
///   youden             TP / P + TN / N - 1, which is largest where balanced_accuracy is
/// It lies in the middle between two probabilities that samples have (below the lowest: between that and 0).
/// Of several that are equally good, it is the one nearest to 0.5, and of two of these the lower. Nothing if
/// no sample is yes, or, but for f1, if all are.
std::optional<ChosenThreshold> choose_threshold(const std::string& measure,
                                                std::span<const ScoredSample> samples);

/// With yes for the samples whose probability is >= threshold.
ThresholdAnswers answers_at(double threshold, std::span<const ScoredSample> samples);

// How well a model tells one class from all others at every threshold: what ROC and precision-recall curves
// are drawn from. Samples are counted in narrow bins of their scores, so counts of threads and ranks add up,
// and the curve is the same on any number of them. A point lies on the exact curve, and its threshold is the
// least score of a sample in the bin; steps inside a bin are not seen. The area is that of the exact curve.
// Samples count alike, whatever they weigh.

/// Models with more classes than this, or outputs of yes or no, have no curves.
inline constexpr Index kMaxCurves = 10;

/// With all samples taken for the class whose score is at least the threshold.
struct ThresholdPoint {
  double threshold = 0;  ///< a probability, or the output of a loss without probabilities
  Index true_positives = 0;
  Index false_positives = 0;
};

struct ThresholdCurve {
  Index of_class = 0;  ///< class, or output of yes or no
  Index positives = 0;
  Index negatives = 0;
  std::vector<ThresholdPoint> points = {};  ///< from the highest threshold down to all samples
  double area = 0;  ///< under the ROC curve; NaN without positives or without negatives
};

/// The counts of one thread, and its scores: 4 bytes a sample and curve.
class ThresholdCounts {
 public:
  /// Two classes, and a single output of yes or no, have one curve, of class 1; values have none.
  ThresholdCounts(const OutputForm& form, Index outputs);

  void add(const MetricRows& rows);
  void add(const ThresholdCounts& other);
  /// *Collective.* The curves of the counts of all ranks; their thresholds are known on rank 0 alone.
  std::vector<ThresholdCurve> curves(Communicator& comm);

 private:
  void count(Index curve, double score, bool positive);

  OutputForm form_;
  Index outputs_ = 0;
  Index first_class_ = 0;
  Index curves_ = 0;
  std::vector<Index> counts_;  // curves x (negatives, positives) x bins
  std::vector<Scalar> least_;  // curves x bins: the least score in it
  std::vector<Scores> scores_;
};

}  // namespace lockstep
