// The progress that rank 0 shows while training goes on: one line that is redrawn on a terminal, plain lines
// now and then elsewhere.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "lockstep/base/terminal.h"
#include "lockstep/base/timer.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/options.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

// How long a run still takes, by how fast it trained and evaluated so far.

/// The evaluations of a run: one set at each interval, and each set at the end.
struct EvaluationSchedule {
  std::optional<Duration> every = {};  ///< none: at the end only
  bool validation = false;  ///< there is a validation set: it is the one that is evaluated in between
  bool test = false;
  bool keeps_best = true;  ///< the weights of the best one are the model

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

class ProgressLine final : public Observer {
 public:
  /// `whole`: progress at the end of the run. `measure`: the number of evaluations that the live line shows,
  /// the last and, if its weights are kept, the best.
  ProgressLine(ProgressStyle style, const Progress& whole, const EvaluationSchedule& evaluations,
               Measure measure);
  ~ProgressLine() override { erase_live_row(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Before the first step: the best evaluation of earlier starts.
  void go_on(const RunRecord& earlier);

  void on_step(const Progress& progress, double loss) override;
  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;
  void on_workers(const WorkersReport&, const Progress&) override {}

 private:
  void redraw(const Progress& progress);
  void print_step(const Progress& progress);
  /// "  validation accuracy 0.9012 (best 0.9050)", or "" before the first evaluation.
  std::string evaluation() const;
  /// "  2 m 05 s left", or "" where it is not known yet.
  std::string time_left() const;

  bool live_;
  bool plain_;
  Progress whole_;
  TimeEstimate estimate_;
  Stopwatch since_start_;
  Stopwatch since_redraw_;
  Stopwatch since_line_;
  double smooth_loss_ = 0;
  bool has_loss_ = false;
  Split split_;  // the set whose evaluations are shown
  bool keeps_best_;
  BestEvaluation best_;
  std::optional<double> latest_;  // its last evaluation
};

/// "[=====>    ]" for 0 <= share <= 1.
std::string bar(double share, int width);

}  // namespace lockstep
