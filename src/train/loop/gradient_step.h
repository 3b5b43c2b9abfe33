// One step's gradients: the replicas of this rank, forward and backward, spread over its threads; each bucket
// leaves as soon as all threads have it, while backward goes on.
//
// ReplicaPass takes one part of a replica's samples through forward, loss and backward. A *walk* says which
// replica goes when; it is chosen once, when the step is made:
//
//   PerReplicaWalk  a thread takes its replicas one after the other through the whole model
//   LockstepWalk    replicas wait for each other inside the model: all go to a sync point together
//   PipelineWalk    the rank runs a stage: micro-batches go through it in the order of the schedule
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bucket_sender.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/base/timer.h"
#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/trainer.h"
#include "lockstep/train/options.h"

namespace lockstep {

// A number of a step that is not finite, and the reports of a loop on it, or on single values of batch norm.

/// The first position in a step, forward and back, where a number is not finite.
struct BadNumber {
  Index order = std::numeric_limits<Index>::max();  ///< orders them; that of "nowhere" is the last
  std::string text;                                 ///< "replica 3: layer 2 'relu' gives ..."
};

/// *Local.* Warns of single values that batch norm had to normalise; `found`: "step 3 gives 2 of 8 replicas".
void warn_of_single_values(const std::string& found);
/// *Collective.* Names the first op whose values, loss or gradient were not finite on some rank; `found`:
/// what this rank knows of it.
std::string describe_bad_number(Communicator& comm, const BadNumber& found);
/// *Collective.* `step`: the one in which, on some rank, the loss or a gradient was not finite; `found`: what
/// this rank knows of it; `good`: steps that the weights have taken; `skipped`: steps left out before. Throws
/// the AgreedError (exit code 5).
[[noreturn]] void stop_on_bad_number(Communicator& comm, const BadNumber& found, Index step, double loss,
                                     Index good, Index skipped = 0);
/// *Collective.* Throws the AgreedError for a number that went bad between two averages of local SGD;
/// `found`: SynchronousStrategy::late_bad_number(), in the same words on all ranks.
[[noreturn]] void stop_on_late_bad_number(const std::string& found);

// Faults on purpose, by debug options: delays, failures, hangs and flipped bits, for tests of what watches.

/// Waits, hangs or fails, if debug options say so for this rank and step. *Collective* where debug.hang is
/// 'skip': the other ranks wait for the one that leaves it out.
void force_faults(const DebugOptions& debug, Communicator& comm, Index step);
/// *Collective.* Flips a bit of one of the weights on debug.flip_rank.
void flip_bit(const DebugOptions& debug, Communicator& comm, Scalar& weight);

/// A training, and the ranks that take its steps together. Everything outlives it.
struct StepContext {
  const TrainingContext& training;
  Communicator& comm;
  const Plan& plan;  ///< that of these ranks
  LocalSums sums = LocalSums::kOneSum;
};

/// One replica of this rank in the step under way.
struct StepReplica {
  Index number = 0;
  std::size_t local = 0;  ///< its place among those of this rank
  ModelValues values = {};
  const ReplicaBatch* batch = nullptr;
  Range rows = {};  ///< of the part under way
  GradientTarget target = {};
  std::vector<FactorBuffers> factors = {};  ///< of the part under way, by op; empty: none
};

/// The part of a replica's samples that passes at a time, and where: a chunk of the model with a workspace.
struct MicroBatch {
  StepReplica& replica;
  Workspace& workspace;
  Index number = 0;  ///< in the step
  Index chunk = 0;   ///< of those that the rank runs
  Index thread = 0;
  std::size_t slot = 0;  ///< its messages, which its workspace waits for before it takes another one
  bool last = false;     ///< of its thread
};

/// The messages between a rank that runs a stage and the other stages of its group: activations, their
/// gradients, and weights that ops of different stages share. There are none where the model is not divided.
class StageExchange {
 public:
  /// *Collective over the group.*
  explicit StageExchange(const StepContext& step);

  void begin_step() { idle_seconds_ = 0; }
  /// *Collective over the group.* Gives `values` with the weights that this rank borrows.
  ModelValues share(const ModelValues& values);
  /// Waits for what is sent from the workspace that the micro-batch takes.
  void begin_forward(const MicroBatch& batch);
  /// Tells the workspace where to leave gradients by weights of other chunks, and adds what these gave for
  /// the weights of this one. Behind Workspace::begin_backward().
  void begin_backward(const MicroBatch& batch);
  /// *Blocking.* Receives what comes that way, if a stage is there.
  void receive(Pipeline::Direction direction, const MicroBatch& batch);
  /// Starts to send what the next stage that way takes, if there is one.
  void send(Pipeline::Direction direction, const MicroBatch& batch);
  void send_tied_gradients(const MicroBatch& batch) {
    if (tied_gradients_) tied_gradients_->send(batch.chunk, batch.number);
  }
  /// Waits until all is sent.
  void finish();
  /// Seconds of the step so far in which this stage waited for others.
  double idle_seconds() const { return idle_seconds_; }

 private:
  // Work in which this stage is idle.
  template <class Work>
  void wait_for(const Work& work) {
    const Stopwatch idle;
    work();
    idle_seconds_ += idle.seconds();
  }
  void wait(std::size_t slot);

  const Model& model_;
  Pipeline* pipeline_;
  TiedWeights tied_weights_;
  std::optional<TiedGradients> tied_gradients_;  // of a stage
  std::vector<std::vector<std::unique_ptr<Request>>> sends_;
  double idle_seconds_ = 0;
};

/// How long the main thread's replicas took in a step: to prepare their samples, and for forward without sync
/// points; and how long the rank waited for other stages.
struct PassSeconds {
  double data = 0;
  double forward = 0;
  double idle = 0;
};

/// Takes the replicas of this rank through the model, one part of their samples at a time: forward(), then
/// backward() with the loss. Threads may do that for different replicas at a time.
class ReplicaPass : NoCopy {
 public:
  /// *Collective over the group.* The context and what it refers to outlive it.
  explicit ReplicaPass(const StepContext& step);

  const StepContext& step() const { return step_; }
  /// Main thread: a step with these samples, of which no gradients are there yet.
  void begin_step();
  /// *Collective over the group.* Main thread: `weights` (empty: those of the strategy) and samples of each
  /// replica.
  void begin(const StepBatch& batch, std::span<const Scalar> weights);

  std::span<StepReplica> replicas() { return replicas_; }
  /// Each thread takes those of its replicas that have samples, in order; `last`: no further one follows.
  using ReplicaWork = std::function<void(Index thread, StepReplica& replica, bool last)>;
  void for_each_replica(const ReplicaWork& work);

  /// Before the first part of the replica: its samples.
  void prepare(Index thread, const StepReplica& replica);
  /// Before its first backward pass: the arena of its gradients.
  void start_target(Index thread, StepReplica& replica);
  /// Finds the factor buffers of the part under way, where gradients are left as factors.
  void find_factor_buffers(StepReplica& replica) const;
  /// The part through all ops of the chunk, and back.
  void forward(const MicroBatch& batch);
  void backward(const MicroBatch& batch, const GradientReadyCallback& on_ready);

  // The steps of these two, for replicas that meet between them.
  Range ops_of(const MicroBatch& batch) const {
    return {0, std::ssize(context_.model.chunk(batch.chunk).ops())};
  }
  void begin_forward(const MicroBatch& batch) { begin_forward(batch, limit_of(batch)); }
  /// With the given limit for the gradient, as for a pass whose gradient nobody adds.
  void begin_forward(const MicroBatch& batch, const std::optional<GradientLimit>& limit);
  /// Adds the sums of statistics that no other replica shares, and hands the outputs on.
  void end_forward(const MicroBatch& batch);
  /// Takes the gradient of the outputs: of the loss, or what the stage behind sends.
  void begin_backward(const MicroBatch& batch);
  void run_backward(const MicroBatch& batch, Range ops, const GradientReadyCallback& on_ready);
  void end_backward(const MicroBatch& batch);
  /// Adds the sums at an op with statistics, over all that the replica was normalised with.
  void add_sums(Index replica, Index op, std::span<const double> sums);

  void add_forward(double seconds) { seconds_.forward += seconds; }
  PassSeconds seconds() const { return {seconds_.data, seconds_.forward, stages_.idle_seconds()}; }
  LossSums& tally_of(const StepReplica& replica) { return tallies_[replica.local]; }
  std::span<const LossSums> tallies() const { return tallies_; }
  const SingleValues& single_values() const { return single_values_; }
  LocalGradients& gradients() { return gradients_; }
  StageExchange& stages() { return stages_; }

 private:
  std::span<const FactoredTensor> factored_tensors() const {
    return factored_ == nullptr ? std::span<const FactoredTensor>() : factored_->tensors();
  }
  void prepare_weights();
  std::optional<GradientLimit> limit_of(const MicroBatch& batch) const;
  void evaluate_loss(const MicroBatch& batch);

  const StepContext& step_;
  const TrainingContext& context_;
  std::vector<StepReplica> replicas_;   // local ones
  std::vector<KernelWeights> weights_;  // one for each arena of weights among them
  std::vector<Index> own_statistics_;   // ops with statistics of a single replica
  SingleValues single_values_;
  FactoredGradients* factored_;  // may be null
  LocalGradients gradients_;
  StageExchange stages_;
  std::vector<LossSums> tallies_;  // one for each local replica
  PassSeconds seconds_;
  Index number_ = 0;  // of the step
};

/// The order in which the replicas of this rank go through the model.
class ReplicaWalk {
 public:
  /// Both outlive it.
  ReplicaWalk(ReplicaPass& pass, BucketSender& sender)
      : step_(pass.step()),
        model_(step_.training.model),
        accumulate_(step_.training.settings.accumulate),
        pass_(pass),
        sender_(sender) {}
  virtual ~ReplicaWalk() = default;
  /// *Collective.* All parts of all replicas, forward and, if so asked, backward: then each bucket is
  /// reported once it is ready. `rows`: samples of each replica of the run.
  virtual void run(std::span<const Index> rows, bool backward) = 0;
  /// *Collective over the group.* After a step: the first number of a replica that is not finite.
  virtual BadNumber check(const StepReplica& replica) = 0;

 protected:
  std::unique_ptr<Workspace> make_workspace(const Model& chunk,
                                            const std::vector<Index>& sync_ops = {}) const {
    return std::make_unique<Workspace>(chunk, divide_up(step_.training.sampler.max_count(), accumulate_),
                                       ActivationRetention::kForTraining, sync_ops);
  }

  const StepContext& step_;
  const Model& model_;
  Index accumulate_;  // parts of the samples of a replica
  ReplicaPass& pass_;
  BucketSender& sender_;
};

/// The part of the samples of a replica that is checked, with a tally of its loss: the first op whose output
/// is not finite, or the loss.
BadNumber check_values(const Model& chunk, const Workspace& workspace, const StepReplica& replica,
                       const LossSums& tally);
/// Repeats forward and backward of a replica that meets no others, all activations and gradients kept.
BadNumber check_again(ReplicaPass& pass, const StepReplica& replica);

std::unique_ptr<ReplicaWalk> make_lockstep_walk(ReplicaPass& pass, BucketSender& sender);
std::unique_ptr<ReplicaWalk> make_pipeline_walk(ReplicaPass& pass, BucketSender& sender);

class GradientStep : NoCopy {
 public:
  explicit GradientStep(const StepContext& step);

  /// *Collective.* Runs all local replicas, starts the exchange of every bucket, and adds the sums of batch
  /// norm to the states (their update is the caller's).
  void run(const StepBatch& batch, Measured measured);
  /// *Collective.* Forward only, all replicas with `weights`: adds the sums of batch norm to the states.
  void measure(const StepBatch& batch, std::span<const Scalar> weights);
  /// *Local.* Why the last run() gave no finite loss or gradient, as far as the replicas hosted here show.
  /// The weights must be those of that run. Takes memory for all activations of a replica. For replicas that
  /// sync, only the last part of their samples is checked, and no gradients, which are already added up.
  BadNumber find_bad_number(const StepBatch& batch);

  /// The sums of each local replica in the last step, in order.
  std::span<const LossSums> tallies() const { return pass_.tallies(); }
  /// Replicas whose batch norm had a single value in the last step.
  const SingleValues& single_values() const { return pass_.single_values(); }
  PassSeconds seconds() const { return pass_.seconds(); }
  /// The exchange of the last step.
  BucketSender& sender() { return sender_; }
  const BucketSender& sender() const { return sender_; }

 private:
  StepContext step_;
  ReplicaPass pass_;
  BucketSender sender_;
  std::unique_ptr<ReplicaWalk> walk_;
};

}  // namespace lockstep
