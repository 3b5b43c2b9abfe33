// The arguments that a training is made from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/options.h"
#include "lockstep/comm/progress_thread.h"
#include "lockstep/data/loader.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/plateau.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/loop/run_control.h"
#include "lockstep/train/loop/saving.h"
#include "lockstep/train/loop/step_tracer.h"
#include "lockstep/train/loop/weight_average.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// The settings of a training, as numbers and choices.
struct TrainingSettings {
  LocalSums sums = LocalSums::kOneSum;
  std::uint64_t seed = 1;
  bool audit = false;  ///< the samples of each epoch are audited
  Index accumulate = 1;
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  Index target_columns = 1;
  bool weighted = false;  ///< samples have weights, or some of their targets are missing
  Index log_every = 100;
  bool histograms = false;       ///< of weights and gradients, beside their norms
  Interval evaluate_every = {};  ///< the validation set, or the test set if there is none; not by the clock
  bool evaluates_at_start = false;
  /// Steps, from the first on, over whose batches the running moments are recomputed before each evaluation;
  /// 0 leaves them as they are.
  Index calibration_steps = 0;
  bool calibrates = false;  ///< a temperature is fitted on the validation set, with the weights that are kept
  Index pause_after = 0;    ///< the run pauses after the first evaluation at or after this step; 0: never
  OnNan on_nan = OnNan::kStop;
  Index skip_limit = 0;                 ///< steps in all that may be left out
  std::vector<std::string> hosts = {};  ///< the host of each rank; empty: all are on one
  CommOptions ranks = {};
  DebugOptions debug = {};
};

/// The objects that a training works with, and its settings. Everything outlives it. Evaluations may be null.
struct TrainingContext {
  Communicator& comm;
  const RunPlan& plan;
  const Model& model;
  const Loss& loss;
  const Schedule& schedule;
  Strategy& strategy;
  ReplicaStates& states;
  ThreadTeam& team;
  const Sampler& sampler;
  Evaluation* validation;
  Evaluation* test;
  Observer& observer;
  RunControl& control;
  ProgressThread* progress = nullptr;  ///< progress thread of ranks that take each step together; may be null
  TrainingSettings settings = {};
  /// Makes a loader of these steps.
  std::function<std::unique_ptr<Loader>(Range steps)> loader = {};
  WeightAverage* average = nullptr;              ///< null: the weights are the model
  StepTracer* tracer = nullptr;                  ///< null: no timeline is recorded
  Saving* saving = nullptr;                      ///< null: nothing is saved
  EarlyStopping* early_stopping = nullptr;       ///< null: all steps are made
  Plateau* plateau = nullptr;                    ///< null: the schedule alone decides the learning rate
  const CheckpointReader* checkpoint = nullptr;  ///< null: from the first step
  Pipeline* pipeline = nullptr;                  ///< `model` is a stage of the model; null: all of it

  /// The ranks that exchange the gradients of `model`: plan.dist is theirs.
  Communicator& workers() const { return pipeline == nullptr ? comm : pipeline->workers(); }

  /// The learning rate of a step (from 0), after all evaluations so far.
  double lr(Index step) const {
    const double scheduled = schedule.lr(plan.before(step));
    return plateau == nullptr ? scheduled : plateau->lr(scheduled);
  }
};

}  // namespace lockstep
