// Schedule plateau: the learning rate falls once evaluations of the validation set get no better, and again
// after each further such time.
#pragma once

#include <span>
#include <string>

#include "lockstep/optim/options.h"
#include "lockstep/train/evaluation/early_stopping.h"

namespace lockstep {

/// All ranks decide alike, since their evaluations are the same.
class Plateau {
 public:
  /// Errors: ConfigError for a bad train.plateau_patience.
  Plateau(Measure measure, const ScheduleOptions& options);

  /// Takes note of an evaluation of the validation set; true if the learning rate falls with it. Another one
  /// after the same step, as a resumed run makes it, changes nothing.
  bool look(const EvalMetrics& evaluation);
  /// The learning rate of a step for which the schedule gives `scheduled`: times decay_factor for each fall,
  /// and no lower than end_lr.
  double lr(double scheduled) const;
  /// "no better loss of the validation set for 5 epochs".
  std::string describe() const { return standstill_.waited(); }

  /// The numbers that a resumed run needs.
  std::span<double> state() { return standstill_.state(); }
  std::span<double> falls() { return std::span(&falls_, 1); }

 private:
  EarlyStopping standstill_;  // due at each fall
  double decay_factor_;
  double end_lr_;
  double falls_ = 0;
};

}  // namespace lockstep
