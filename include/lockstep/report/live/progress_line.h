// The progress that rank 0 shows while training goes on: one line that is redrawn on a terminal, plain lines
// now and then elsewhere.
#pragma once

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

/// Which evaluations and metrics are shown.
struct ShownProgress {
  bool validation = false;  ///< there is a validation set, and its evaluations stand in the live line
  bool keeps_best = true;   ///< the weights of the best one are the model
  bool every_line = false;  ///< all metrics and evaluations become lines
};

class ProgressLine final : public Observer {
 public:
  /// `whole`: progress at the end of the run. `measure`: the number of evaluations that the live line shows,
  /// the last and, if its weights are kept, the best.
  ProgressLine(ProgressStyle style, const Progress& whole, const ShownProgress& shown, Measure measure);
  ~ProgressLine() override { erase_live_row(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Before the first step: the best evaluation of earlier starts.
  void go_on(const RunRecord& earlier);

  void on_step(const Progress& progress, double loss) override;
  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;

 private:
  void redraw(const Progress& progress);
  void print_step(const Progress& progress);
  /// "  validation accuracy 0.9012 (best 0.9050)", or "" before the first evaluation.
  std::string evaluation() const;
  /// "  1,234 samples/s  2 m 05 s left", or "" where they are not known yet. `rate`: with that.
  std::string pace(const Progress& progress, bool rate) const;

  bool live_;
  bool plain_;
  bool every_line_;
  Progress whole_;
  std::optional<Progress> first_;  // the first step that was seen, where a resumed run starts
  double first_seconds_ = 0;       // when it ended, by since_start_
  double evaluating_ = 0;          // seconds since then
  Stopwatch since_start_;
  Stopwatch since_redraw_;
  Stopwatch since_line_;
  double smooth_loss_ = 0;
  bool has_loss_ = false;
  Split split_;  // the set whose evaluations are shown
  bool keeps_best_;
  BestEvaluation best_;
  std::optional<double> latest_;  // its last evaluation
  double line_of_evaluation_;     // when there was the last one, by since_start_
};

/// "[=====>    ]" for 0 <= share <= 1.
std::string bar(double share, int width);

}  // namespace lockstep
