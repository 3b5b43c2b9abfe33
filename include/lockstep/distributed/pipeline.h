// The ranks of a run whose model is divided into stages: pipeline parallel (model parallel). Each rank of a
// *group* (StageGrid) runs one stage, and the replicas that the group hosts go through the stages one
// after the other. What passes at a time, the samples of a replica or a part of them, is a *micro-batch*. The
// ranks of all groups that run the same stage are *workers* of it: they exchange its gradients by the
// strategy, as all ranks do where the model is not divided.
//
// With an ordered reduction the numbers do not depend on the division: each stage adds its own range of the
// gradients along the fixed tree over the replicas, and what is summed over the weights of all stages is
// added in the order of the stages.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/distributed/stage_tasks.h"

namespace lockstep {

class Pipeline {
 public:
  /// *Collective, blocking.* `grid`: of the ranks of `world`, which must outlive it.
  Pipeline(Communicator& world, const StageGrid& grid);

  const StageGrid& grid() const { return grid_; }
  Index stages() const { return group_->size(); }
  Index stage() const { return group_->rank(); }
  bool is_first() const { return stage() == 0; }
  /// It has the end of the model.
  bool is_last() const { return stage() + 1 == stages(); }
  /// The ranks of all groups that run this stage, in order of the groups.
  Communicator& workers() { return *workers_; }
  /// The ranks of this group, in order of the stages.
  Communicator& group() { return *group_; }

  /// Direction of a message: activations to the next stage, or their gradients to the one before. Behind the
  /// last stage is the first one with its next chunk of the model.
  enum class Direction { kForward, kBackward };
  /// Starts to send these tensors that way; they must stay as they are until the request is complete. All
  /// stages take micro-batches and chunks in one order, so what is sent one way arrives in the order in which
  /// it is received.
  std::unique_ptr<Request> start_send(Direction direction, std::span<const ConstBuffer> tensors);
  /// Starts to receive what comes that way.
  std::unique_ptr<Request> start_receive(Direction direction, std::span<const Buffer> tensors);

  /// *Collective over the group.* All stages get the numbers of the last one.
  void share_of_last(std::span<double> numbers);
  /// *Collective over the group.* A step is good if it is for each stage; the loss is that of the last stage,
  /// zero elsewhere before.
  void agree(bool& good, double& loss);
  /// *Collective over the group.* The sum over the numbers of all stages in the order of the model, as one
  /// rank that had them all would add them. `chunk_begins`: the first number of each chunk of the model but
  /// the first one, on this rank.
  double sum_in_order(std::span<const double> numbers, std::span<const Index> chunk_begins = {});
  /// *Collective over the group.* The numbers of all stages, in the order of the model.
  std::vector<double> join(std::span<const double> numbers, std::span<const Index> chunk_begins = {});

 private:
  int next() const { return (group_->rank() + 1) % group_->size(); }
  int before() const { return (group_->rank() + group_->size() - 1) % group_->size(); }

  std::unique_ptr<Communicator> workers_;
  std::unique_ptr<Communicator> group_;
  StageGrid grid_;
};

/// *Collective over the group.* From the parts of one stage to those of the whole model: arrays that are
/// divided by stage follow one another in the order of the stages, and what all stages hold alike is saved by
/// the last.
void offset_by_stage(Pipeline& pipeline, SavedState& state);

}  // namespace lockstep
