// The training loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loader.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/gradient_step.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/run_plan.h"
#include "lockstep/train/step_clock.h"

namespace lockstep {

/// What a training is made from. Everything outlives it. Evaluations may be null.
struct TrainingContext {
  Communicator& comm;
  const RunPlan& plan;
  const Model& model;
  const Loss& loss;
  const Schedule& schedule;
  Strategy& strategy;
  ReplicaStates& states;
  ThreadTeam& team;
  Loader& loader;
  const Sampler& sampler;
  Evaluation* validation;
  Evaluation* test;
  Observer& observer;

  Reduction reduction = Reduction::kNative;
  std::uint64_t seed = 1;
  Index accumulate = 1;
  Index target_columns = 1;
  Index log_every = 100;
  double evaluate_every = 1;  ///< epochs; the validation set, or the test set if there is none
  /// Steps, from the first on, over whose batches the running moments are recomputed before each evaluation;
  /// 0 leaves them as they are.
  Index calibration_steps = 0;
  /// Makes a loader of the first `steps` steps.
  std::function<std::unique_ptr<Loader>(Index steps)> calibration = {};
  DebugOptions debug;
};

/// How a training went, the same on all ranks.
struct TrainingResult {
  Progress progress;
  double seconds = 0;  ///< of the steps, evaluation not counted
  double samples_per_second = 0;
  TimeShares time;
  std::optional<EvalMetrics>
      last_evaluation;  ///< of the test set if there is one, else of the validation set
};

class Trainer {
 public:
  explicit Trainer(const TrainingContext& context);

  /// *Collective.* From the strategy's weights as they are to the end of the plan. Errors: AgreedError (exit
  /// code 5) if the loss or a gradient is not finite; the weights are then those of the last good step.
  TrainingResult run();

 private:
  void run_step(Index step);
  void log_metrics(Index steps_done);
  void evaluate_if_due(Index steps_done);
  void recompute_moments();
  EvalMetrics evaluate(Evaluation& evaluation, Index steps_done);
  void force_faults(Index step) const;
  [[noreturn]] void stop_on_bad_number(const StepBatch& batch, Index step, double loss);

  TrainingContext context_;
  GradientStep gradients_;
  StepClock log_clock_;
  StepClock run_clock_;
  std::vector<Index> samples_;  // of each replica in this step
  std::vector<Tally> tallies_;  // of each local replica since the last log line
  double train_seconds_ = 0;
  double logged_seconds_ = 0;
  Index logged_samples_ = 0;
  Index evaluations_done_ = 0;
  std::optional<EvalMetrics> last_evaluation_;
};

}  // namespace lockstep
