// Early stopping: a run ends before its last step once evaluations of the validation set get no better
// (Prechelt 1998, "Early stopping - but when?").
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/options.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

// The measure by which evaluations of a run are compared, and the evaluation that is the best by it.

/// Whether the smallest value of "loss", "accuracy" or a metric is its best.
bool smaller_is_better(const std::string& measure);

/// One number of an evaluation, with the direction in which it is better.
class Measure {
 public:
  /// `name`: "loss", "accuracy", or one of `metrics`, those of eval.metrics. Errors: ConfigError for another.
  Measure(std::string name, const std::vector<std::string>& metrics, bool has_accuracy);

  const std::string& name() const { return name_; }
  /// Its value; nothing where it is not defined or no finite number.
  std::optional<double> of(const EvalMetrics& evaluation) const;
  /// Whether `now` is better than `before` by more than `least`. Anything is better than NaN.
  bool is_better(double now, double before, double least = 0) const;

 private:
  std::string name_;
  bool smaller_is_better_ = true;
};

class BestEvaluation {
 public:
  explicit BestEvaluation(Measure measure);

  /// Whether an evaluation is better than all before it, which it then is the best of. One in which the
  /// measure is not defined is not.
  bool improves(const EvalMetrics& evaluation);

  const Measure& measure() const { return measure_; }
  double value() const { return state_[0]; }                    ///< NaN before the first
  Index step() const { return static_cast<Index>(state_[1]); }  ///< after which it was made
  /// The numbers that a resumed run needs.
  std::span<double> state() { return state_; }

 private:
  Measure measure_;
  std::array<double, 2> state_;
};

/// The time that evaluations may take to get better: "5 evaluations", or a Duration.
class Patience {
 public:
  /// Errors: ConfigError naming `key` and the text, also for no time at all.
  Patience(std::string_view key, std::string_view text);

  /// Whether so much training, or so many evaluations, are as long or longer. All of `before` is behind
  /// `now`.
  bool is_over(const Progress& before, const Progress& now, Index evaluations) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::optional<Duration> duration_;  // none: in evaluations
  double evaluations_ = 0;
};

/// All ranks decide alike, since their evaluations are the same.
class EarlyStopping {
 public:
  /// `least`: the change of the measure that counts as better; at least 0.
  EarlyStopping(Measure measure, Patience patience, double least);

  /// Takes note of an evaluation of the validation set. Another one after the same step, as a resumed run
  /// makes it, changes nothing.
  void look(const EvalMetrics& evaluation);
  /// True once the run is to end.
  bool is_due() const {
    return patience_.is_over(progress_at(kBest), progress_at(kLast),
                             static_cast<Index>(state_[kEvaluations]));
  }
  /// Counts the time anew, from the last evaluation on; what is better stays the same.
  void wait_again();
  /// "no better loss of the validation set for 5 epochs; the best was 0.3035 after step 2,321".
  std::string describe() const;
  /// Its first half.
  std::string waited() const;

  /// The numbers that a resumed run needs.
  std::span<double> state() { return state_; }

 private:
  // Offsets in the state; a Progress takes three numbers.
  enum { kValue, kBest, kLast = kBest + 3, kEvaluations = kLast + 3, kCount };

  Progress progress_at(std::size_t offset) const;
  void note_progress(std::size_t offset, const Progress& progress);

  Measure measure_;
  std::string positive_;  // class that the measure may be about, as the evaluations say
  Patience patience_;
  double least_;
  std::array<double, kCount> state_{};
};

// Schedule plateau: the learning rate falls once evaluations of the validation set get no better, and again
// after each further such time.

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
