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

#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"

namespace lockstep {

class Model;
class Workspace;

// The order in which the ranks of a group take micro-batches through the stages of a model: pure functions,
// the same on all ranks.
//
// With an interleaved schedule a rank runs several *chunks* of the model ("model chunks", Narayanan et al.
// 2021): of S ranks and v chunks each, rank s runs the parts s, S + s, 2 S + s, ... of the S v parts into
// which the layers are divided. Activations go on from the last rank to the first one's next chunk, and the
// time in which a rank is idle becomes that of a pass through a part, which is v times shorter.

/// One pass of a micro-batch through a chunk of the model.
struct StageTask {
  Index micro_batch = 0;
  bool forward = true;
  Index chunk = 0;  ///< of those that the rank runs
  bool operator==(const StageTask&) const = default;
};

/// The tasks of `stage` (of `stages`) in a step of so many micro-batches, in order (Narayanan et al. 2019,
/// "PipeDream"; Huang et al. 2019, "GPipe"; Narayanan et al. 2021, "Efficient large-scale language model
/// training"). A chunk takes its backward passes in the order of its forward passes.
///
/// Interleaved, micro-batches take the chunks in rounds: all of a round pass through a chunk, then through
/// the next one. A round has as many micro-batches as there are stages, and the last one those that remain,
/// too, so that any number is allowed and no stage has to wait between two rounds.
std::vector<StageTask> stage_tasks(const PipelineSchedule& schedule, Index stage, Index stages,
                                   Index micro_batches);

/// By chunk, the micro-batches in flight between their forward and their backward pass, at most.
std::vector<Index> chunks_alive(const PipelineSchedule& schedule, Index stage, Index stages,
                                Index micro_batches);
/// The sum over the chunks: passes whose activations have memory at a time.
Index micro_batches_alive(const PipelineSchedule& schedule, Index stage, Index stages, Index micro_batches);

/// The bubble: the share of the time that a stage is idle, if all stages take equally long. `chunks`: of the
/// model on each rank.
double idle_share(Index stages, Index micro_batches, Index chunks = 1);

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
  void share_of_last(std::span<double> numbers) { group_->broadcast(as_buffer(numbers), group_->size() - 1); }
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

// The tensors of a micro-batch, or of a block of samples, that cross the borders of a stage.

/// The tensors that a chunk of the model takes from the stage on the other side, in the order of the
/// messages: activations of the stage before, or gradients from the stage behind.
std::vector<Buffer> incoming_tensors(Pipeline::Direction direction, const Model& chunk, Workspace& workspace);
/// And those that it gives: activations to the stage behind, or gradients to the stage before.
std::vector<ConstBuffer> outgoing_tensors(Pipeline::Direction direction, const Model& chunk,
                                          Workspace& workspace);

}  // namespace lockstep
