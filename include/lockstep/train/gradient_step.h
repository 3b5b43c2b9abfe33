// One step's gradients: this rank's replicas, forward and backward, spread over its threads; each bucket
// leaves as soon as all threads have it, while backward goes on.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loader.h"
#include "lockstep/dist/local_gradients.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/metrics.h"

namespace lockstep {

/// What it is made from. Everything outlives it.
struct GradientStepContext {
  Communicator& comm;
  const Plan& plan;
  const Model& model;
  const Loss& loss;
  Strategy& strategy;
  ThreadTeam& team;
  Reduction reduction;
  Index accumulate;
  Index most_rows;  ///< samples of a replica in a step, at most
  Index target_columns;
};

/// Seconds of one step inside the exchange, and of them the wait for the slowest rank (measured on some steps
/// only).
struct ExchangeTime {
  double exchange = 0;
  std::optional<double> waiting;
};

class GradientStep {
 public:
  explicit GradientStep(const GradientStepContext& context);

  /// *Collective.* Runs all local replicas and starts the exchange of every bucket. With `measure_waiting`
  /// the ranks meet before the last bucket leaves, and the time to get there is the wait.
  void run(const StepBatch& batch, bool measure_waiting);

  /// The sums of each local replica in the last step, in order.
  std::span<const Tally> tallies() const { return tallies_; }
  const ExchangeTime& exchange_time() const { return time_; }

  /// *Local.* Why the last batch has no finite loss or gradient: the first local replica, layer or tensor in
  /// which a number went bad; "" if there is none here. The weights must be those of the last run().
  std::string find_bad_number(const StepBatch& batch);

 private:
  struct Lane {  // one thread's
    Lane(const Model& model, Index rows) : workspace(model, rows, true) {}
    Workspace workspace;
    std::atomic<Index> at_layer{0};  // gradients of this layer and those above it are complete
  };

  void run_thread(Index thread, const StepBatch& batch);
  void run_replica(Index thread, const ReplicaBatch& batch, Index replica, bool last);
  void layer_done(Index thread, Index layer);
  void send_ready_buckets();
  std::string check_replica(Lane& lane, const ReplicaBatch& batch, Index replica);
  Tally run_part(Lane& lane, const ReplicaBatch& batch, Range rows, const GradientTarget& target,
                 const LayerDone& done);

  GradientStepContext context_;
  LocalGradients gradients_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Tally> tallies_;
  std::size_t buckets_sent_ = 0;
  bool measure_waiting_ = false;
  ExchangeTime time_;
};

}  // namespace lockstep
