// One step's gradients: this rank's replicas, forward and backward, spread over its threads; each bucket
// leaves as soon as all threads have it, while backward goes on.
//
// If no layer adds statistics over replicas, a thread takes its replicas one after the other through the
// whole model, with one workspace. Otherwise all replicas go from sync point to sync point together, each
// with a workspace of its own, and between two such runs of ops the ranks add their statistics. A layer that
// ranks divide among themselves (divided_layers.h) is such a point, too.
//
// A rank that runs a stage of the model takes its replicas, or the parts of them, as micro-batches through
// that stage, in the order of the schedule, with a workspace for each one that is alive. Where replicas sync
// in any stage, they go through all stages together, one part after the other.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loader.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/nn/kernel_weights.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/bucket_sender.h"

namespace lockstep {

/// The arguments that a GradientStep is made from. Everything outlives it.
struct GradientStepContext {
  Communicator& comm;
  const Plan& plan;
  const Model& model;
  const Loss& loss;
  Strategy& strategy;
  ReplicaStates& states;
  ThreadTeam& team;
  LocalSums sums;
  std::uint64_t seed;
  Index accumulate;
  Index max_rows;  ///< samples of a replica in a step, at most
  Index target_columns;
  ProgressThread* progress = nullptr;  ///< runs while buckets are exchanged and backward goes on; may be null
  Index bad_replica = -1;              ///< replica whose loss is NaN on purpose in `bad_steps`
  Range bad_steps = {};
  Pipeline* pipeline = nullptr;  ///< `model` is a stage of the model; null: it is all of it
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
};

/// The first position in a step, forward and back, where a number is not finite.
struct BadNumber {
  Index order = std::numeric_limits<Index>::max();  ///< orders them; that of "nowhere" is the last
  std::string text;                                 ///< "replica 3: layer 2 'relu' gives ..."
};

class GradientStep {
 public:
  explicit GradientStep(const GradientStepContext& context);

  /// *Collective.* Runs all local replicas, starts the exchange of every bucket, and adds the sums of batch
  /// norm to the states (their update is the caller's).
  void run(const StepBatch& batch, Measured measured);
  /// *Collective.* Forward only, all replicas with `weights`: adds the sums of batch norm to the states.
  void measure(const StepBatch& batch, std::span<const Scalar> weights);

  /// The sums of each local replica in the last step, in order.
  std::span<const LossSums> tallies() const { return tallies_; }
  /// Replicas whose batch norm had a single value in the last step.
  const SingleValues& single_values() const { return single_values_; }
  const ExchangeTime& exchange_time() const { return sender_.time(); }
  /// The points of the last step where ranks waited for each other; see end_exchange().
  std::span<const Arrival> arrivals() const { return sender_.arrivals(); }
  /// *Local.* The exchange of the last step is complete.
  void end_exchange() { sender_.note_end(); }
  /// Seconds that the main thread's replicas took in the last step to prepare their samples, and for forward
  /// without sync points.
  double data_seconds() const { return data_seconds_; }
  double forward_seconds() const { return forward_seconds_; }
  /// Seconds that the stage waited in the last step for what other stages send.
  double idle_seconds() const { return idle_seconds_; }

  /// *Local.* Why the last run() gave no finite loss or gradient, as far as the replicas hosted here show.
  /// The weights must be those of that run. Takes memory for all activations of a replica. For replicas that
  /// sync, only the last part of their samples is checked, and no gradients, which are already added up.
  BadNumber find_bad_number(const StepBatch& batch);

 private:
  // One replica in the step under way.
  struct Replica {
    Index number = 0;
    ModelValues values = {};
    const ReplicaBatch* batch = nullptr;
    Range rows = {};  // rows of the part under way
    GradientTarget target = {};
    Write first_write = Write::kReplace;      // of the first part, in each chunk of the model
    std::vector<FactorBuffers> factors = {};  // factor buffers of the part under way, by op; empty: none
  };
  // The work of a thread on one of its replicas; `last`: it has no further one with samples.
  using ReplicaWork = std::function<void(Index thread, Replica& replica, bool last)>;

  bool together() const { return together_; }
  bool has_loss() const { return context_.pipeline == nullptr || context_.pipeline->is_last(); }
  std::span<const FactoredTensor> factored_tensors() const {
    return factored_ == nullptr ? std::span<const FactoredTensor>() : factored_->tensors();
  }
  std::size_t local(const Replica& replica) const {
    return static_cast<std::size_t>(replica.number - hosted_.begin);
  }
  Workspace& workspace_of(Index thread, const Replica& replica);
  void begin(const StepBatch& batch);
  void prepare_weights();
  void walk(bool backward);
  void for_each_replica(const ReplicaWork& work);
  void prepare(Index thread, const Replica& replica);
  void start_pass(Workspace& workspace, const Replica& replica,
                  const std::optional<GradientLimit>& limit) const;
  void find_factor_buffers(Replica& replica) const;
  void evaluate_loss(Workspace& workspace, const Replica& replica);
  void add_sums(Index replica, Index op, std::span<const double> sums);
  void add_own_sums(Workspace& workspace, Index replica, Index chunk = 0);

  void run_per_replica(Index thread, Replica& replica, bool last, bool backward);
  // A micro-batch in the step under way, with the chunk and the workspace that it passes through.
  struct MicroBatch {
    Index number = 0;  // in the step
    Replica& replica;
    Range rows;
    bool last = false;  // no further one follows
    std::size_t workspace = 0;
    Index chunk = 0;
  };

  void walk_stage(bool backward);
  std::vector<MicroBatch> micro_batches();
  void stage_forward(const MicroBatch& batch);
  void stage_backward(const MicroBatch& batch);
  bool ends_model(Index chunk) const;
  bool has_stage(Pipeline::Direction direction, Index chunk) const;
  void enter_stage(const MicroBatch& batch);
  void begin_backward(const MicroBatch& batch, Workspace& workspace);
  void end_backward(const MicroBatch& batch);
  void send_on(Pipeline::Direction direction, const MicroBatch& batch);
  void wait_for_all_sends();
  void receive_tensors(Pipeline::Direction direction, Workspace& workspace, Index chunk = 0);
  std::unique_ptr<Request> send_tensors(Pipeline::Direction direction, Workspace& workspace, Index chunk);
  void wait_for_sends(std::size_t workspace);
  void send_and_wait(Pipeline::Direction direction, Workspace& workspace, Index chunk = 0);

  void run_together(Index part, bool backward);
  void forward_pass(bool backward);
  void backward_pass(bool last_part);
  void start_target(Index thread, Replica& replica);
  void start_targets();
  MicroBatch micro_batch_of(Replica& replica, bool last) const;
  Index offset_of(Index op) const;
  void sync(std::size_t point, bool forward);
  void add_statistics(std::size_t point, bool forward);
  void run_divided(std::size_t point, bool forward);

  std::optional<GradientLimit> limit_of(const Replica& replica, bool last) const;
  void run_backward(Workspace& workspace, Range ops, const Replica& replica,
                    const GradientReadyCallback& on_ready);
  BadNumber check_again(const Replica& replica);
  void repeat(Replica& replica, std::span<const std::unique_ptr<Workspace>> workspaces);
  BadNumber check_together(const Replica& replica);
  BadNumber check_values(const Workspace& workspace, const Replica& replica, Index chunk = 0) const;
  BadNumber check_gradient(const Replica& replica) const;
  Index whole_ops() const;
  Index params_behind(const std::string& name) const;

  GradientStepContext context_;
  Range hosted_;
  Index ops_;
  // The work of all replicas together before an op: to add statistics, or to compute the op.
  struct SyncPoint {
    std::optional<ScopeSums> forward = {};
    std::optional<ScopeSums> backward = {};
    std::unique_ptr<DividedLayer> divided = nullptr;
  };

  std::vector<Index> sync_points_;     // ops before which replicas sync
  std::vector<SyncPoint> syncs_;       // one for each of them
  bool together_;                      // they sync, here or in another stage
  std::vector<Index> own_statistics_;  // ops with statistics of a single replica
  SingleValues single_values_;
  FactoredGradients* factored_;  // may be null
  LocalGradients gradients_;
  BucketSender sender_;
  // By chunk of the model, the workspaces that it needs, and the first of them.
  std::vector<Index> alive_;
  std::vector<Index> first_workspaces_;
  // One for each thread, or local replica if they sync, or micro-batch of a chunk that can be alive.
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::vector<std::vector<std::unique_ptr<Request>>> sends_;  // messages of a stage from each workspace
  std::vector<Replica> replicas_;                             // local ones
  std::vector<KernelWeights> weights_;                        // one for each arena of weights among them
  TiedWeights tied_weights_;
  std::optional<TiedGradients> tied_gradients_;  // of a stage
  std::vector<LossSums> tallies_;                // one for each local replica
  double data_seconds_ = 0;
  double forward_seconds_ = 0;
  double idle_seconds_ = 0;
  std::vector<double> rows_;  // sums at a sync point, a row for each local replica
  Index step_ = 0;
};

}  // namespace lockstep
