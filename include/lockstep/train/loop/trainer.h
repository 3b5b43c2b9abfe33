// A training from its first step to its last evaluation: its arguments, the loop that makes the updates, and
// what goes on between them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/options.h"
#include "lockstep/comm/progress_thread.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/loop/run_control.h"
#include "lockstep/train/loop/step_tracer.h"
#include "lockstep/train/loop/weight_average.h"
#include "lockstep/train/plan/run_plan.h"
#include "lockstep/train/storage/checkpoint.h"

namespace lockstep {

/// How a run is saved while it goes on.
struct Saving {
  CheckpointWriter& writer;
  Interval every;     ///< beside a stop, which is always saved
  bool wait = false;  ///< a checkpoint that is due waits for one that is still being written
  std::optional<BestEvaluation> best =
      {};                        ///< its checkpoint is kept, and its weights are the model; else the last
  CheckpointHeader header = {};  ///< fields that are equal in all checkpoints of the run
  std::map<std::string, std::string> texts = {};  ///< rank 0: files beside the model
};

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
  /// *Local.* A text that the model with these values writes; null: it writes none.
  std::function<std::string(const ModelValues&)> continue_sample = {};

  /// The ranks that exchange the gradients of `model`: plan.dist is theirs.
  Communicator& workers() const { return pipeline == nullptr ? comm : pipeline->workers(); }

  /// The learning rate of a step (from 0), after all evaluations so far.
  double lr(Index step) const {
    const double scheduled = schedule.lr(plan.before(step));
    return plateau == nullptr ? scheduled : plateau->lr(scheduled);
  }
};

/// How the updates between two evaluations come about: all ranks step by step together, or each worker at its
/// own pace.
class UpdateLoop {
 public:
  virtual ~UpdateLoop() = default;

  /// *Local.* For a run that goes on after so many steps: before saved_state().
  virtual void resume_after(Index steps) = 0;
  /// *Local, between two steps.* State of the loop from step to step; its memory is read to save a run, and
  /// filled to resume one.
  virtual SavedState saved_state() = 0;
  /// *Collective.* Once, before the first step; after what was saved has been filled.
  virtual void begin() = 0;

  /// *Collective.* Trains until so many updates are done in all, or until the ranks agree that something else
  /// is due first (RunControl). Errors: AgreedError (exit code 5) if the
  /// loss or a gradient is not finite; the weights are then those of the last good step.
  virtual void advance(Index until) = 0;
  /// *Collective.* The running moments anew, over the batches of the first `steps` steps under these weights
  /// (Wu & Johnson 2021, "Rethinking batch in BatchNorm", section 3.1): of many batches under the same
  /// weights, instead of a moving average over weights that were.
  virtual void recompute_moments(Index steps, std::span<const Scalar> weights) = 0;
  /// *Collective.* After the last step of a run that ends before its plan: reports what came since the last
  /// line of metrics.
  virtual void log_end() = 0;
  /// How far training has come; samples are those that were learned from.
  virtual Progress progress() const = 0;
  /// Seconds of the steps so far.
  virtual double seconds() const = 0;
  /// All steps so far.
  virtual StepsReport report() const = 0;
};

std::unique_ptr<UpdateLoop> make_synchronous_loop(const TrainingContext& context,
                                                  SynchronousStrategy& strategy);
std::unique_ptr<UpdateLoop> make_asynchronous_loop(const TrainingContext& context,
                                                   AsynchronousStrategy& strategy);

class Trainer {
 public:
  explicit Trainer(const TrainingContext& context);

  /// *Collective.* From the strategy's weights as they are to the end of the plan. Errors: AgreedError (exit
  /// code 5) if the loss or a gradient is not finite; the weights are then those of the last good step.
  TrainingResult run();

 private:
  void begin();
  void take_steps();
  bool is_over() const { return loop_->progress().steps >= context_.plan.steps || ends_early(); }
  TrainingResult result();
  SavedState saved_state();
  // The one that training stops for; null: there is none.
  Evaluation* evaluation_during() const {
    return context_.validation != nullptr ? context_.validation : context_.test;
  }
  bool has_evaluation() const { return evaluation_during() != nullptr; }
  bool evaluates_at_start() const { return context_.settings.evaluates_at_start && has_evaluation(); }
  // Whether one is due in a step after `before`, up to the one that ends with `steps_done`.
  bool evaluation_due(Index before, Index steps_done) const;
  bool checkpoint_due(Index before, Index steps_done) const;
  Index next_stop(Index steps_done) const;
  bool stops() const { return context_.control.stops(); }
  // The fate of a checkpoint if the one before it is still being written.
  enum class IfBusy { kLeaveOut, kWait };
  void save(IfBusy rule);
  bool is_averaged() const { return context_.average != nullptr && context_.average->has_begun(); }
  ModelValues gather_model();
  void average_weights();
  void recompute_moments();
  void recompute_average_moments(Index batches);
  void evaluate(Evaluation* evaluation);
  std::string adapt_lr(const EvalMetrics& validation);
  bool ends_early() const { return context_.early_stopping != nullptr && context_.early_stopping->is_due(); }
  bool keeps_best() const { return context_.saving != nullptr && context_.saving->best.has_value(); }
  void finish_run();
  void choose_weights();
  void calibrate();
  void measure_kept();
  // *Collective.*
  ModelValues kept_values() { return has_other_weights() ? best_weights_.values() : gather_model(); }
  // *Collective*, whenever it is asked: whether an evaluation is to end.
  std::function<bool()> interrupted() {
    return [this] { return context_.control.look() && stops(); };
  }
  // Whether the weights of the model are others than those that training has ended with.
  bool has_other_weights() const { return best_ && best_->progress.steps != loop_->progress().steps; }
  // The checkpoint of a pause holds the evaluation by which trials are compared.
  bool pauses_after(Index done) const {
    return context_.settings.pause_after > 0 && done >= context_.settings.pause_after;
  }
  // The end of a run has a checkpoint if there are any: the best weights are no reason to lose the last ones.
  bool saves_last() const {
    return keeps_best() || (context_.saving != nullptr && context_.saving->every.ever());
  }

  TrainingContext context_;
  std::unique_ptr<UpdateLoop> loop_;
  std::optional<EvalMetrics> last_evaluation_;
  std::optional<EvalMetrics> best_evaluation_;  // of this start
  std::vector<EvalMetrics> evaluations_;        // see TrainingResult
  std::optional<EvalMetrics> last_;             // see TrainingResult
  BestWeights best_weights_;
  bool paused_ = false;
  Index evaluated_ = -1;            // after so many steps the last evaluation was made and told of
  std::optional<BestResult> best_;  // once the weights of the model are chosen
  std::optional<Calibration> calibration_;
};

}  // namespace lockstep
