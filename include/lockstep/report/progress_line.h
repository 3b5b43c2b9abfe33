// The progress that rank 0 shows while training goes on: one line that is redrawn on a terminal, plain lines
// now and then elsewhere.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/terminal.h"
#include "lockstep/base/timer.h"
#include "lockstep/report/time_estimate.h"
#include "lockstep/train/evaluation/best_measure.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/options.h"

namespace lockstep {

class ProgressLine final : public Observer {
 public:
  /// `whole`: progress at the end of the run. `measure`: the number of evaluations that the live line shows,
  /// the last and the best.
  ProgressLine(ProgressStyle style, const Progress& whole, const EvaluationSchedule& evaluations,
               Measure measure);
  ~ProgressLine() override { erase_live_row(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

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
  BestEvaluation best_;
  std::optional<double> latest_;  // its last evaluation
};

/// "[=====>    ]" for 0 <= share <= 1.
std::string bar(double share, int width);

}  // namespace lockstep
