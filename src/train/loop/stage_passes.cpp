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
#include "lockstep/comm/watchdog.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/train/loop/gradient_step.h"

namespace lockstep {

// Every step has the same micro-batches, even empty ones, so that its schedule and memory are the plan's. All
// stages leave out an empty one.
std::vector<GradientStep::MicroBatch> GradientStep::micro_batches() {
  std::vector<MicroBatch> batches;
  for (Replica& replica : replicas_) {
    const Index rows = replica.batch->rows;
    const Index parts = std::min(context_.accumulate, rows);
    for (Index i = 0; i < context_.accumulate; ++i) {
      batches.push_back({.number = std::ssize(batches),
                         .replica = replica,
                         .rows = i < parts ? split_evenly(rows, parts, i) : Range{}});
    }
  }
  const auto last = std::find_if(batches.rbegin(), batches.rend(),
                                 [](const MicroBatch& batch) { return !batch.rows.empty(); });
  if (last != batches.rend()) last->last = true;
  return batches;
}

void GradientStep::walk_stage(bool backward) {
  const std::vector<MicroBatch> batches = micro_batches();
  const Pipeline& pipeline = *context_.pipeline;
  for (const StageTask& task :
       stage_tasks(context_.schedule, pipeline.stage(), pipeline.stages(), std::ssize(batches))) {
    MicroBatch batch = at(batches, task.micro_batch);
    if (batch.rows.empty()) continue;
    batch.chunk = task.chunk;
    batch.workspace = static_cast<std::size_t>(at(first_workspaces_, task.chunk) +
                                               task.micro_batch % at(alive_, task.chunk));
    if (task.forward) {
      stage_forward(batch);
    } else if (backward) {
      stage_backward(batch);
    }
  }
  wait_for_all_sends();
  if (backward) sender_.ready_from(0, 0);
}

// Begins a pass with what the stage before sends; of a model that is not divided, with the samples alone.
void GradientStep::enter_stage(const MicroBatch& batch) {
  Workspace& workspace = *workspaces_[batch.workspace];
  if (context_.pipeline != nullptr) note_phase(Phase::kStageForward, batch.number);
  wait_for_sends(batch.workspace);
  start_pass(workspace, batch.replica, limit_of(batch.replica, batch.last));
  receive_tensors(Pipeline::Direction::kForward, workspace, batch.chunk);
}

// Whether the outputs of the model are those of this chunk of it.
bool GradientStep::ends_model(Index chunk) const {
  return has_loss() && chunk + 1 == context_.model.chunks();
}

// Takes the gradient of the outputs, of the loss or what the stage behind sends, and what other chunks give
// for weights of this one that they share.
void GradientStep::begin_backward(const MicroBatch& batch, Workspace& workspace) {
  if (context_.pipeline != nullptr) note_phase(Phase::kStageBackward, batch.number);
  if (ends_model(batch.chunk)) {
    evaluate_loss(workspace, batch.replica);
  } else {
    receive_tensors(Pipeline::Direction::kBackward, workspace, batch.chunk);
  }
  const GradientTarget& target = batch.replica.target;
  workspace.begin_backward(target.arena, target.write);
  if (!tied_gradients_) return;
  const Stopwatch idle;
  tied_gradients_->begin(batch.chunk, batch.number, workspace);
  tied_gradients_->add_received(batch.chunk, batch.number, target.arena);
  idle_seconds_ += idle.seconds();
}

void GradientStep::end_backward(const MicroBatch& batch) {
  send_on(Pipeline::Direction::kBackward, batch);
  if (tied_gradients_) tied_gradients_->send(batch.chunk, batch.number);
}

void GradientStep::stage_forward(const MicroBatch& batch) {
  Replica& replica = batch.replica;
  Workspace& workspace = *workspaces_[batch.workspace];
  replica.rows = batch.rows;
  if (batch.chunk == 0) prepare(0, replica);
  enter_stage(batch);
  const Stopwatch forward;
  workspace.forward({0, std::ssize(context_.model.chunk(batch.chunk).ops())});
  add_own_sums(workspace, replica.number, batch.chunk);
  forward_seconds_ += forward.seconds();
  send_on(Pipeline::Direction::kForward, batch);
}

// The arena of a replica begins with its first part in the last chunk, which goes back before the others. The
// last micro-batch of a chunk makes its gradients ready, and those of the chunks behind are ready by then.
void GradientStep::stage_backward(const MicroBatch& batch) {
  Replica& replica = batch.replica;
  const Model& chunk = context_.model.chunk(batch.chunk);
  const bool last_chunk = batch.chunk + 1 == context_.model.chunks();
  replica.rows = batch.rows;
  if (batch.rows.begin == 0 && last_chunk) start_target(0, replica);
  replica.target.write = batch.rows.begin == 0 ? replica.first_write : Write::kAdd;
  Workspace& workspace = *workspaces_[batch.workspace];
  begin_backward(batch, workspace);
  const Index end = last_chunk ? context_.plan.gradient_size : chunk.weights().end;
  GradientReadyCallback on_ready;
  if (batch.last) on_ready = [&](Index from) { sender_.ready_from(0, std::min(from, end)); };
  run_backward(workspace, {0, std::ssize(chunk.ops())}, replica, on_ready);
  end_backward(batch);
}

// Nothing where no stage is that way.
void GradientStep::receive_tensors(Pipeline::Direction direction, Workspace& workspace, Index chunk) {
  const std::vector<Buffer> tensors = incoming_tensors(direction, context_.model.chunk(chunk), workspace);
  if (tensors.empty()) return;
  const Stopwatch idle;
  context_.pipeline->start_receive(direction, tensors)->wait();
  idle_seconds_ += idle.seconds();
}

std::unique_ptr<Request> GradientStep::send_tensors(Pipeline::Direction direction, Workspace& workspace,
                                                    Index chunk) {
  return context_.pipeline->start_send(direction,
                                       outgoing_tensors(direction, context_.model.chunk(chunk), workspace));
}

// Whether the model goes on that way from this chunk of it.
bool GradientStep::has_stage(Pipeline::Direction direction, Index chunk) const {
  if (context_.pipeline == nullptr) return false;
  return direction == Pipeline::Direction::kForward ? !ends_model(chunk)
                                                    : !context_.pipeline->is_first() || chunk > 0;
}

// Starts to send what the next stage that way takes, if there is one.
void GradientStep::send_on(Pipeline::Direction direction, const MicroBatch& batch) {
  if (!has_stage(direction, batch.chunk)) return;
  sends_[batch.workspace].push_back(send_tensors(direction, *workspaces_[batch.workspace], batch.chunk));
}

void GradientStep::send_and_wait(Pipeline::Direction direction, Workspace& workspace, Index chunk) {
  if (has_stage(direction, chunk)) send_tensors(direction, workspace, chunk)->wait();
}

void GradientStep::wait_for_all_sends() {
  for (std::size_t i = 0; i < sends_.size(); ++i) wait_for_sends(i);
  const Stopwatch idle;
  tied_weights_.finish();
  if (tied_gradients_) tied_gradients_->finish();
  idle_seconds_ += idle.seconds();
}

void GradientStep::wait_for_sends(std::size_t workspace) {
  if (sends_[workspace].empty()) return;
  const Stopwatch idle;
  for (const std::unique_ptr<Request>& send : sends_[workspace]) send->wait();
  sends_[workspace].clear();
  idle_seconds_ += idle.seconds();
}

}  // namespace lockstep
