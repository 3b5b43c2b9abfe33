// How well a model tells one class from all others at every threshold: what ROC and precision-recall curves
// are drawn from. Samples are counted in narrow bins of their scores, so counts of threads and ranks add up,
// and the curve is the same on any number of them. A point lies on the exact curve; steps inside a bin are
// not seen.
#pragma once

#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

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

  /// The area under the ROC curve; NaN without positives or without negatives.
  double area() const;
};

/// The counts of one thread.
class ThresholdCounts {
 public:
  /// Two classes, and a single output of yes or no, have one curve, of class 1; values have none.
  ThresholdCounts(const OutputForm& form, Index outputs);

  void add(const MetricRows& rows);
  void add(const ThresholdCounts& other);
  /// *Collective.* The curves of the counts of all ranks.
  std::vector<ThresholdCurve> curves(Communicator& comm);

 private:
  void count(Index curve, double score, bool positive);

  OutputForm form_;
  Index outputs_ = 0;
  Index first_class_ = 0;
  Index curves_ = 0;
  std::vector<Index> counts_;  // curves x (negatives, positives) x bins
};

}  // namespace lockstep
