// The passes of a rank that runs a stage of the model. The micro-batches are the replicas that its group
// hosts, or the parts of them that train.accumulate makes, in order. A forward pass receives what the stage
// before sends, and sends what it computes to the stage behind; a backward pass does the same with gradients,
// the other way. The last stage evaluates the loss between the two.
//
// A message is sent while the rank goes on with the next task. Its memory is a workspace, so a workspace
// waits for its messages before it takes the next micro-batch. Receiving waits: that is the time in which a
// stage is idle. Stages depend on each other in one direction at a time, and collectives are among the ranks
// of one stage, so that nobody waits in a circle.
#include <algorithm>

#include "lockstep/base/timer.h"
#include "lockstep/train/loop/gradient_step.h"

namespace lockstep {
namespace {

ConstBuffer buffer_of(const Matrix& tensor) {
  return as_buffer(std::span<const Scalar>(tensor.data(), static_cast<std::size_t>(tensor.size())));
}

Buffer writable(Matrix tensor) {
  return as_buffer(std::span<Scalar>(tensor.data(), static_cast<std::size_t>(tensor.size())));
}

}  // namespace

std::vector<GradientStep::MicroBatch> GradientStep::micro_batches() {
  std::vector<MicroBatch> batches;
  for (Replica& replica : replicas_) {
    const Index rows = replica.batch->rows;
    const Index parts = std::min(context_.accumulate, rows);
    for (Index i = 0; i < parts; ++i) {
      batches.push_back({.number = std::ssize(batches),
                         .replica = replica,
                         .rows = split_evenly(rows, parts, i),
                         .workspace = batches.size() % workspaces_.size()});
    }
  }
  if (!batches.empty()) batches.back().last = true;
  return batches;
}

void GradientStep::walk_stage(bool backward) {
  const std::vector<MicroBatch> batches = micro_batches();
  const Pipeline& pipeline = *context_.pipeline;
  for (const StageTask& task :
       stage_tasks(context_.schedule, pipeline.stage(), pipeline.stages(), std::ssize(batches))) {
    const MicroBatch& batch = at(batches, task.micro_batch);
    if (task.forward) {
      stage_forward(batch);
    } else if (backward) {
      stage_backward(batch);
    }
  }
  for (std::size_t i = 0; i < sends_.size(); ++i) wait_for_sends(i);
  if (backward) sender_.ready_from(0, 0);
}

// Features are for ops that read the input of the model, targets for the loss.
bool GradientStep::reads_batch() const {
  const auto reads_input = [](const ModelOp& op) {
    return std::ranges::find(op.inputs, kModelInput) != op.inputs.end();
  };
  return context_.pipeline->is_last() || std::ranges::any_of(context_.model.ops(), reads_input);
}

void GradientStep::stage_forward(const MicroBatch& batch) {
  Replica& replica = batch.replica;
  Workspace& workspace = *workspaces_[batch.workspace];
  replica.rows = batch.rows;
  if (reads_batch()) prepare(0, replica);
  context_.comm.note_phase(Phase::kStageForward, batch.number);
  wait_for_sends(batch.workspace);
  start_pass(workspace, replica, limit_of(replica, batch.last));
  receive_tensors(Pipeline::Direction::kForward, workspace);
  const Stopwatch forward;
  workspace.forward({0, ops_});
  add_own_sums(workspace, replica.number);
  forward_seconds_ += forward.seconds();
  if (!context_.pipeline->is_last()) {
    sends_[batch.workspace].push_back(send_tensors(Pipeline::Direction::kForward, workspace));
  }
}

// The arena of a replica begins with its first part. The loss is the last stage's.
void GradientStep::start_target(Replica& replica, bool first_part) {
  if (!first_part) {
    replica.target.write = Write::kAdd;
    return;
  }
  replica.target = gradients_.begin_replica(0, replica.number);
  if (replica.target.write == Write::kReplace) at(replica.target.arena, context_.plan.loss_offset) = 0;
}

void GradientStep::stage_backward(const MicroBatch& batch) {
  Replica& replica = batch.replica;
  Workspace& workspace = *workspaces_[batch.workspace];
  context_.comm.note_phase(Phase::kStageBackward, batch.number);
  replica.rows = batch.rows;
  start_target(replica, batch.rows.begin == 0);
  if (context_.pipeline->is_last()) {
    evaluate_loss(workspace, replica);
  } else {
    receive_tensors(Pipeline::Direction::kBackward, workspace);
  }
  GradientReadyCallback on_ready;
  if (batch.last) on_ready = [&](Index from) { sender_.ready_from(0, from); };
  run_backward(workspace, {0, ops_}, replica, on_ready);
  if (!context_.pipeline->is_first()) {
    sends_[batch.workspace].push_back(send_tensors(Pipeline::Direction::kBackward, workspace));
  }
}

// Nothing where no stage is that way.
void GradientStep::receive_tensors(Pipeline::Direction direction, Workspace& workspace) {
  std::vector<Buffer> tensors;
  if (direction == Pipeline::Direction::kForward) {
    const Range received = context_.model.received();
    for (Index op = received.begin; op < received.end; ++op)
      tensors.push_back(writable(workspace.received(op)));
  } else {
    for (const Index op : context_.model.sent()) tensors.push_back(writable(workspace.sent_gradient(op)));
  }
  if (tensors.empty()) return;
  const Stopwatch idle;
  context_.pipeline->start_receive(direction, tensors)->wait();
  idle_seconds_ += idle.seconds();
}

std::unique_ptr<Request> GradientStep::send_tensors(Pipeline::Direction direction, Workspace& workspace) {
  std::vector<ConstBuffer> tensors;
  if (direction == Pipeline::Direction::kForward) {
    for (const Index op : context_.model.sent()) tensors.push_back(buffer_of(workspace.sent(op)));
  } else {
    const Range received = context_.model.received();
    for (Index op = received.begin; op < received.end; ++op) {
      tensors.push_back(buffer_of(workspace.received_gradient(op)));
    }
  }
  return context_.pipeline->start_send(direction, tensors);
}

// Does nothing where the model is not divided, or has no stage that way.
void GradientStep::send_and_wait(Pipeline::Direction direction, Workspace& workspace) {
  if (context_.pipeline == nullptr) return;
  const bool forward = direction == Pipeline::Direction::kForward;
  if (forward ? !context_.pipeline->is_last() : !context_.pipeline->is_first()) {
    send_tensors(direction, workspace)->wait();
  }
}

void GradientStep::wait_for_sends(std::size_t workspace) {
  if (sends_[workspace].empty()) return;
  const Stopwatch idle;
  for (const std::unique_ptr<Request>& send : sends_[workspace]) send->wait();
  sends_[workspace].clear();
  idle_seconds_ += idle.seconds();
}

}  // namespace lockstep
