// How a training went: what its reports and summary.json say of it.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/calibration.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/rank_times.h"

namespace lockstep {

/// The evaluation whose weights are the model.
struct BestResult {
  std::string measure;  ///< "loss"
  double value = 0;     ///< value on the validation set
  Progress progress;    ///< when it was made
};

/// How a training went, the same on all ranks.
struct TrainingResult {
  Progress progress;
  double seconds = 0;  ///< time of the steps, evaluation not counted
  double samples_per_second = 0;
  double lr = 0;  ///< learning rate of the last step
  TimeShares time;
  RankTimes ranks = {};
  /// Evaluation of the test set if there is one, else of the validation set; calibrated, if the model is.
  std::optional<EvalMetrics> last_evaluation;
  std::optional<WorkersReport> workers;  ///< report on asynchronous workers
  Index skipped_steps = 0;
  Index single_value_steps = 0;  ///< steps in which batch norm had a single value to normalise
  Index repairs = 0;
  bool paused = false;             ///< it stopped at TrainingSettings::pause_after
  std::string stopped;             ///< why the run stopped before its end; "" if it did not
  std::string early;               ///< why the run ended before its last step; "" if it did not
  std::optional<BestResult> best;  ///< nothing: the last weights are the model
  std::string average;             ///< how the weights of the model are averaged; "" if they are not
  /// The weights and moments of `best`, as a model file holds them; empty if they are the last ones.
  AlignedBuffer<Scalar> best_weights;
  std::optional<Calibration> calibration = {};  ///< of the weights of the model
};

}  // namespace lockstep
