// Whether ranks that must hold the same weights and optimizer state do: compared by a hash every so many
// steps. One 64-bit number of each rank is sent with what the ranks agree on anyway (RunControl); only where
// they differ is more looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/options.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/train/loop/trainer.h"

namespace lockstep {

class ReplicaCheck {
 public:
  /// References outlive it.
  ReplicaCheck(Communicator& comm, SynchronousStrategy& strategy, const CommOptions& options)
      : comm_(comm), strategy_(strategy), options_(options) {}

  /// *Local*, after each step. Where a comparison is due on all ranks (where replicas do not share weights
  /// all the time, when they next do): what this rank adds to a sum that is 0 if they hold the same.
  std::optional<std::uint64_t> checksum(Index steps_done);
  /// *Collective*, where that sum is not 0. Errors: AgreedError (exit code 4) with the first tensor that
  /// differs, the ranks and by how much, unless comm.on_desync is rebroadcast: then all get the state of the
  /// majority (where there is none, of the lowest rank's side).
  void report(Index steps_done);
  /// How often that was done.
  Index repairs() const { return repairs_; }

 private:
  std::string compare(const ReplicatedState& state, Index steps_done);
  std::string describe(const ReplicatedState& state, const std::vector<Index>& hashes, int reference);
  double largest_difference(const ReplicatedState& state, const NamedSpan& part, int reference);

  Communicator& comm_;
  SynchronousStrategy& strategy_;
  CommOptions options_;
  bool due_ = false;
  Index repairs_ = 0;
};

// The audit of a training whose replicas take each step together: at the end of each epoch the ids of the
// samples that were used are compared with those that the epoch has.

class EpochAudit {
 public:
  explicit EpochAudit(const TrainingContext& context);

  /// Adds what a checkpoint keeps: the ids of the epoch under way, of each hosted replica. They are counted
  /// and saved whether samples are audited or not, so that an audit can begin at any resume.
  void add_saved(SavedState& state);
  /// *Collective.* After the saved state was filled, when so many steps have been taken.
  void begin(Index steps_done);
  /// *Collective.* After each step. Errors: AgreedError (exit code 5) if the epoch that ends with it used
  /// other samples than it should.
  void add(const StepBatch& batch, Index step);

 private:
  Range hosted() const { return context_.plan.dist.hosted_by(context_.workers().rank()); }
  bool knows_epoch(Index steps_done) const;
  void compare(Index epoch);

  TrainingContext context_;
  Index epoch_steps_;
  std::vector<IdSums> ids_;  // ids of the samples of each hosted replica since the epoch began
  Index first_epoch_ = 0;    // the first whose samples are known from its beginning on
};

}  // namespace lockstep
