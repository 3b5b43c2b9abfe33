// The audit of a training whose replicas take each step together: at the end of each epoch the ids of the
// samples that were used are compared with those that the epoch has.
#pragma once

#include <vector>

#include "lockstep/train/loop/training_context.h"

namespace lockstep {

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
