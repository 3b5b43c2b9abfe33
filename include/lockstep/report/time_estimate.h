// How long a run still takes, by how fast it trained and evaluated so far.
#pragma once

#include <array>
#include <optional>

#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

/// The evaluations of a run: one set at each interval, and each set at the end.
struct EvaluationSchedule {
  std::optional<Duration> every = {};  ///< none: at the end only
  bool validation = false;  ///< there is a validation set: it is the one that is evaluated in between
  bool test = false;

  /// Evaluations of the set that are still due after `progress` of a run that ends at `whole`.
  Index still_due(Split split, const Progress& progress, const Progress& whole) const;
};

class TimeEstimate {
 public:
  TimeEstimate(const Progress& whole, const EvaluationSchedule& evaluations)
      : whole_(whole), evaluations_(evaluations) {}

  /// `seconds`: any clock that only this run's calls share.
  void on_step(const Progress& progress, double seconds);
  void on_evaluation(Split split, double seconds);

  /// Samples per second of training, without evaluations; none before half a second of it was seen.
  std::optional<double> rate() const;
  /// None where there is no rate.
  std::optional<double> seconds_left() const;

 private:
  struct Evaluated {
    Index times = 0;
    double seconds = 0;
  };

  double evaluation_seconds(Split split) const;

  Progress whole_;
  EvaluationSchedule evaluations_;
  std::optional<Progress> first_;  // the first step that was seen, where a resumed run starts
  Progress last_;
  double seconds_ = 0;  // time from the end of the first step to that of the last, without evaluations
  double end_of_last_ = 0;
  double evaluating_ = 0;  // since the last step
  std::array<Evaluated, 2> evaluated_;
};

}  // namespace lockstep
