// The plan of a run, in numbers: a pure function of the config, the data set's size and the number of ranks.
// It is printed before each run and by `trainer plan`, and the run is held to it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/refusal_name.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/data/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/stages.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/options.h"

namespace lockstep {

struct RunPlanRequest {
  const TrainOptions& train;
  const DataOptions& data;
  const DistOptions& distribute;
  const ScheduleOptions& schedule;
  const Model& model;
  std::span<const std::unique_ptr<Model>> stages = {};  ///< stages of the model; empty if it is not divided
  std::uint64_t seed = 1;
  Index rows = 0;          ///< rows of the training set
  Index starts = 0;        ///< DatasetInfo::starts of it
  Index record_bytes = 0;  ///< memory of one record
  std::shared_ptr<const std::vector<Chunk>> streamed =
      nullptr;  ///< chunks of the training set; null: it is loaded
  Index target_columns = 1;
  bool weighted = false;      ///< records have weights
  bool has_lengths = false;   ///< records are sequences of different lengths
  bool of_positions = false;  ///< each position of a record has targets
  std::shared_ptr<const std::vector<Scalar>> lengths =
      nullptr;                ///< of the training set, for data.bucket_by_length; null: without
  std::string positive = {};  ///< the class that is yes, of two: the model file names it
  OptimizerMemory optimizer = {};
  std::vector<OptimizerMemory> stage_optimizers = {};  ///< of each of the stages
  Index evaluation_rows = 0;                           ///< rows of the validation and the test set together
  Index evaluation_sets = 1;                           ///< how many sets that are: each has its activations
  Index evaluation_batch = 1;
  Index evaluation_rankings = 0;  ///< rankings that the metrics need: each keeps a score of each row
  bool saves = false;             ///< makes checkpoints
  bool keeps_best = false;        ///< makes one of the best evaluation, whatever `saves` says
  std::vector<std::string> multipliers = {};  ///< see RunPlan
  Index world = 1;
  std::vector<Index> node_sizes = {};  ///< ranks of each node, in order; empty: all are on one

  StageGrid grid() const { return {world, std::max<Index>(1, std::ssize(stages)), distribute.placement}; }
};

/// Bytes on the rank that needs most. What ranks of a node share counts for the first of them.
struct MemoryPlan {
  Index weights = 0;
  Index optimizer = 0;
  Index gradients = 0;  ///< local sums and exchange
  Index activations = 0;
  Index data = 0;        ///< records and prepared batches
  Index evaluation = 0;  ///< records, activations and scores
  Index checkpoint = 0;  ///< the copy that is written while training goes on
  Index program = 0;     ///< the program, its libraries and MPI, without all of the above
  Index total() const {
    return weights + optimizer + gradients + activations + data + evaluation + checkpoint + program;
  }
};

/// The work of a rank that runs a stage of the model.
struct StagePlan {
  std::string layers;  ///< "0 to 3.body.1"; with several chunks "0 to 1, 4 to 5"
  Plan dist;           ///< of the ranks that run this stage, one of each group
  Index parameters = 0;
  Index flops = 0;           ///< operations for one sample, forward and backward
  Index received_bytes = 0;  ///< for one sample, from the stage before; as much goes back as gradients
  Index alive = 0;           ///< micro-batches that are in memory at a time, at most, each chunk's counted
  TiedBytes tied = {};       ///< for the weights that it shares with other stages
  MemoryPlan memory;
};

struct RunPlan {
  Plan dist;                      ///< where the model is divided: of the ranks that run one of the stages
  std::vector<StagePlan> stages;  ///< empty: the model is not divided
  /// Micro-batches that a group takes through its stages before these are empty again, at most: those of a
  /// step, or with `lockstep` those of one of its train.accumulate parts.
  Index micro_batches = 0;
  Index chunks = 1;       ///< of the model on each rank
  bool lockstep = false;  ///< stages take all of these to each batch norm over replicas together
  StagePlacement placement = StagePlacement::kNeighbours;
  SamplingOptions sampling;
  EpochPlan epoch;
  std::string strategy;
  bool weighted = false;           ///< a step divides by the sum of the weights of its samples
  bool of_positions = false;       ///< it divides by positions, not by samples
  bool asynchronous = false;       ///< workers do not wait for each other
  Index backup_workers = 0;        ///< workers whose gradients a step does not wait for
  std::optional<Index> max_ahead;  ///< gradients that a worker may be ahead of the slowest
  Index step_batch = 0;            ///< samples that make a step: the global batch, or what a step takes of it
  Index epoch_samples = 0;         ///< samples that make the steps of an epoch
  Index steps_per_epoch = 0;
  Index steps = 0;             ///< steps of the whole run; an upper bound if early_stopping is not empty
  Index samples = 0;           ///< samples of the whole run
  double epochs = 0;           ///< epochs of the whole run
  double times_each_seen = 0;  ///< how often the whole run sees a sample, on average
  double lr_start = 0;
  double lr_peak = 0;
  double lr_end = 0;
  Precision precision = Precision::kFp32;
  std::string batch_norm;   ///< modes, with the samples that are normalised together; "" if there is none
  Index single_values = 0;  ///< replicas of which batch norm has a single value in the last step of an epoch
  Index split_layers = 0;   ///< layers with split=rows
  Index parameters = 0;
  Index flops = 0;           ///< operations for one sample, forward and backward
  Index gradient_bytes = 0;  ///< the arena that is exchanged
  Index sent_bytes = 0;      ///< most bytes that a worker sends per step; on average, where steps differ
  Index server_sent_bytes = 0;
  /// The rule of early stopping: "after 5 epochs without a better loss of the validation set"; "" for none.
  std::string early_stopping;
  /// How the learning rate falls beside the schedule: "is multiplied by 0.1 after each 5 epochs without a
  /// better loss of the validation set"; "" if it does not.
  std::string plateau;
  std::vector<std::string> multipliers;  ///< lines of describe_multipliers() on lr and weight decay
  Index average_every = 0;               ///< local steps between two averages; 0: none
  double ema = 0;                        ///< decay of the exponential average of the weights; 0: none
  /// Steps after which the model is an average of the weights; 0: never. A uniform average takes in the
  /// weights after so many steps, and then those at the end of each epoch and of the run.
  Index averaged_from = 0;
  MemoryPlan memory;  ///< memory of workers
  MemoryPlan server_memory;
  Index model_file_bytes = 0;  ///< of the tensors
  Index model_head_bytes = 0;  ///< of the header before them
  Index checkpoint_bytes = 0;  ///< weights and optimizer state

  /// Ranks of the run.
  Index ranks() const { return dist.world * std::max<Index>(1, std::ssize(stages)); }
  /// Share of forward and backward in which a stage is idle with so many micro-batches. Requires stages.
  double idle_share(Index with) const;
  StageGrid grid() const { return {ranks(), std::max<Index>(1, std::ssize(stages)), placement}; }
  /// Sets `dist` for a rank that runs this stage; where the model is not divided, nothing changes.
  void enter_stage(Index stage) {
    if (!stages.empty()) dist = at(stages, stage).dist;
  }

  /// Whether the gradient of one worker is a step, so that an update takes only its part of the global batch.
  bool steps_by_worker() const { return asynchronous && backup_workers == 0; }
  /// Batches that a rank may go through, at most. A worker alone may take every step, and skips batches in
  /// which it has no samples.
  Index batches() const { return asynchronous ? 2 * steps + 1 : steps; }
  /// Whether the run averages its weights.
  bool averages() const { return averaged_from > 0; }
  /// Whether the model after so many steps is an average.
  bool is_averaged(Index done) const { return averages() && done >= averaged_from; }
  /// Whether a uniform average takes in the weights after a step behind `before`, up to `done`.
  bool averages_between(Index before, Index done) const;
  /// "exponential average (train.ema 0.999)". Requires averages().
  std::string describe_average() const;
  Progress whole_run() const { return {.steps = steps, .samples = samples, .epochs = epochs}; }
  /// Progress when `step` (from 0) begins.
  Progress before(Index step) const;
};

/// Errors: ConfigError for what cannot be run (batch below replicas, ranks without work, ...).
RunPlan make_run_plan(const RunPlanRequest& request);

// Bytes that the ranks of a plan hold and send: of a model as a whole, of its stages, and of any ops of a
// model before it is decided where it is cut.

/// The plan of the ranks that have `model`, all of the model or a stage of it. Errors: ConfigError.
Plan plan_ranks(const RunPlanRequest& request, const Model& model, Index replicas);

/// All of a model, one of the stages of a request, or ops that could be one.
struct PlannedStage {
  const Model& model;
  const OptimizerMemory& optimizer;
  Index number = 0;
  std::span<const Index> alive = {};  ///< by chunk of a stage, the micro-batches that are in memory at a time
};

/// Fills in the bytes of `plan`; the rest of it is there.
void plan_costs(const RunPlanRequest& request, const PlannedStage& stage, RunPlan& plan);

/// Adds the stages, and the memory of a rank of the largest one; the rest of `plan` is there, as if the model
/// were not divided.
void plan_stages(const RunPlanRequest& request, RunPlan& plan);

/// Estimates the memory of a rank from plans of two kinds alone, so that a model of n ops takes 2 n plans and
/// not n squared: those of the ops before a cut, and of the ops behind one. What both have beyond the whole
/// model is what lies between. Weights that ops share are counted apart, since that does not hold for them;
/// of the gradients by them it counts the most that may be kept.
class StageMemory {
 public:
  struct Stage {
    std::unique_ptr<Model> model;
    OptimizerMemory optimizer;
  };

  /// `request`, with its plan: of any division into as many stages. `make`: the stage of these ops. All
  /// outlive it.
  StageMemory(const RunPlanRequest& request, const RunPlan& plan, std::function<Stage(Range ops)> make);

  /// Bytes of a rank that runs these ops as this part of the model (divide_model()) and no other. Errors:
  /// ConfigError.
  Index bytes(Range ops, Index part);

 private:
  // Bytes of a rank that has one micro-batch in memory, without weights that ops share.
  struct Parts {
    Index activations = 0;
    Index data = 0;
    Index other = 0;
  };
  const Parts& parts_of(Range ops);
  Index tied_bytes(Range ops, Index part) const;

  const RunPlanRequest& request_;
  const RunPlan& plan_;
  std::function<Stage(Range ops)> make_;
  std::vector<ModelTie> ties_;
  std::vector<Index> alive_;                  // micro-batches of each part that are in memory at a time
  std::vector<std::optional<Parts>> before_;  // the ops before each cut
  std::vector<std::optional<Parts>> behind_;
};

// Runs that cannot be, each with its reason, before any record is read: settings that cannot be combined, and
// outputs, losses and targets that do not suit each other. Nothing is switched off silently: what
// configs/texts/refusals.txt names is refused, and what is possible, but hardly meant, is said once.

struct Refusal {
  std::string name;    ///< the combination: "local_sgd with lossy compression"
  std::string reason;  ///< one sentence, with what to do instead
};

/// Every one there is.
std::span<const Refusal> refusals();

/// `found`: the numbers or names that make it apply, where the config does not show them.
/// Errors: ConfigError if it applies.
void refuse_if(bool applies, RefusalName name, const std::string& found = "");

/// Errors: ConfigError with the first refusal that applies to a run.
void refuse_run(const RunPlanRequest& request, const SamplingOptions& sampling);

/// The replicas of which batch norm has a single value in the step.
SingleValues single_values_of(const RunPlanRequest& request, const SamplingOptions& sampling, Index step);

struct FitQuestion {
  const DatasetInfo& data;
  const Model& model;
  OutputForm form;             ///< form of the outputs under the loss
  std::string loss;            ///< its name in the catalog
  std::string preset = {};     ///< of a preset "model.preset 'gpt' with model.outputs = 10", else ""
  bool probabilities = false;  ///< it learns from a probability for each class, too
  bool leaves_out = false;     ///< Loss::takes_missing_targets()
  bool lengths = false;        ///< the training set has lengths
};

/// Errors: ConfigError if the loss cannot learn these targets from these outputs.
void refuse_misfit(const FitQuestion& question);

/// Sentences about what is possible, but hardly meant: more outputs than classes, a sigmoid before a loss
/// that takes one itself, a mean squared error on classes, a batch beyond the data.
std::vector<std::string> find_doubts(const FitQuestion& question, const RunPlan& plan);

/// One such sentence, or "": `classes` were found in the data once it was read.
std::string doubt_spare_outputs(const FitQuestion& question, Index classes);

}  // namespace lockstep
