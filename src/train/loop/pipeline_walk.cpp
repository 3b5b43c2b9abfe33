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

#include "gradient_step.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/pipeline.h"

namespace lockstep {
namespace {

// The micro-batches of a step, or where replicas meet, of one of its parts.
Index micro_batches_of(const StepContext& step) {
  const bool meets = runs_in_lockstep(step.training.model, step.plan);
  const Index parts = meets ? 1 : step.training.settings.accumulate;
  return step.plan.hosted_by(step.comm.rank()).size() * parts;
}

class PipelineWalk final : public ReplicaWalk {
 public:
  PipelineWalk(ReplicaPass& pass, BucketSender& sender);

  void run(std::span<const Index> rows, bool backward) override;
  BadNumber check(const StepReplica& replica) override { return check_again(pass_, replica); }

 private:
  // Rows of a replica that pass through the chunks of the model at a time.
  struct Part {
    StepReplica& replica;
    Range rows;
    bool last = false;  // no further one follows
  };
  // The workspaces of a chunk: one for each micro-batch that can be between forward and backward.
  using Workspaces = std::vector<std::unique_ptr<Workspace>>;

  std::vector<Part> parts();
  void backward_pass(const MicroBatch& batch);

  const Pipeline& pipeline_;
  std::vector<StageTask> tasks_;
  std::vector<Workspaces> workspaces_;    // by chunk
  std::vector<std::size_t> first_slots_;  // by chunk
  std::vector<Write> first_writes_;       // by replica: how its first part writes to its arena
};

PipelineWalk::PipelineWalk(ReplicaPass& pass, BucketSender& sender)
    : ReplicaWalk(pass, sender),
      pipeline_(*step_.training.pipeline),
      tasks_(stage_tasks(step_.training.settings.schedule, pipeline_.stage(), pipeline_.stages(),
                         micro_batches_of(step_))),
      first_writes_(pass_.replicas().size()) {
  std::size_t slots = 0;
  for (const Index alive : chunks_alive(step_.training.settings.schedule, pipeline_.stage(),
                                        pipeline_.stages(), micro_batches_of(step_))) {
    const Model& chunk = model_.chunk(std::ssize(workspaces_));
    Workspaces& own = workspaces_.emplace_back();
    for (Index i = 0; i < alive; ++i) own.push_back(make_workspace(chunk));
    first_slots_.push_back(slots);
    slots += own.size();
  }
}

// Every step has the same micro-batches, even empty ones, so that its schedule and memory are the plan's. All
// stages leave out an empty one.
std::vector<PipelineWalk::Part> PipelineWalk::parts() {
  std::vector<Part> all;
  for (StepReplica& replica : pass_.replicas()) {
    const Index rows = replica.batch->rows;
    const Index count = std::min(accumulate_, rows);
    for (Index i = 0; i < accumulate_; ++i) {
      all.push_back({.replica = replica, .rows = i < count ? split_evenly(rows, count, i) : Range{}});
    }
  }
  const auto last =
      std::find_if(all.rbegin(), all.rend(), [](const Part& part) { return !part.rows.empty(); });
  if (last != all.rend()) last->last = true;
  return all;
}

void PipelineWalk::run(std::span<const Index> /*rows*/, bool backward) {
  const std::vector<Part> all = parts();
  for (const StageTask& task : tasks_) {
    const Part& part = at(all, task.micro_batch);
    if (part.rows.empty() || !(task.forward || backward)) continue;
    const Workspaces& of_chunk = at(workspaces_, task.chunk);
    const std::size_t place = static_cast<std::size_t>(task.micro_batch) % of_chunk.size();
    part.replica.rows = part.rows;
    const MicroBatch batch{.replica = part.replica,
                           .workspace = *of_chunk[place],
                           .number = task.micro_batch,
                           .chunk = task.chunk,
                           .slot = at(first_slots_, task.chunk) + place,
                           .last = part.last};
    if (!task.forward) {
      backward_pass(batch);
      continue;
    }
    if (batch.chunk == 0) pass_.prepare(0, batch.replica);
    pass_.forward(batch);
  }
  pass_.stages().finish();
  if (backward) sender_.ready_from(0, 0);
}

// The arena of a replica begins with its first part in the last chunk, which goes back before the others. The
// last micro-batch of a chunk makes its gradients ready, and those of the chunks behind are ready by then.
void PipelineWalk::backward_pass(const MicroBatch& batch) {
  StepReplica& replica = batch.replica;
  const Model& chunk = model_.chunk(batch.chunk);
  const bool last_chunk = batch.chunk + 1 == model_.chunks();
  if (replica.rows.begin == 0 && last_chunk) {
    pass_.start_target(0, replica);
    first_writes_[replica.local] = replica.target.write;
  }
  replica.target.write = replica.rows.begin == 0 ? first_writes_[replica.local] : Write::kAdd;
  const Index end = last_chunk ? step_.plan.gradient_size : chunk.weights().end;
  GradientReadyCallback on_ready;
  if (batch.last) on_ready = [&](Index from) { sender_.ready_from(0, std::min(from, end)); };
  pass_.backward(batch, on_ready);
}

}  // namespace

std::unique_ptr<ReplicaWalk> make_pipeline_walk(ReplicaPass& pass, BucketSender& sender) {
  return std::make_unique<PipelineWalk>(pass, sender);
}

StageExchange::StageExchange(const StepContext& step)
    : model_(step.training.model), pipeline_(step.training.pipeline), tied_weights_(pipeline_, model_) {
  if (pipeline_ == nullptr) return;
  const Index micro_batches = micro_batches_of(step);
  tied_gradients_.emplace(*pipeline_, model_, step.training.settings.schedule, micro_batches);
  sends_.resize(static_cast<std::size_t>(micro_batches * model_.chunks()));
}

ModelValues StageExchange::share(const ModelValues& values) {
  if (pipeline_ == nullptr) return values;
  ModelValues shared;
  wait_for([&] { shared = tied_weights_.share(values); });
  return shared;
}

void StageExchange::begin_forward(const MicroBatch& batch) {
  if (pipeline_ == nullptr) return;
  note_phase(Phase::kStageForward, batch.number);
  wait(batch.slot);
}

void StageExchange::begin_backward(const MicroBatch& batch) {
  if (!tied_gradients_) return;
  wait_for([&] {
    tied_gradients_->begin(batch.chunk, batch.number, batch.workspace);
    tied_gradients_->add_received(batch.chunk, batch.number, batch.replica.target.arena);
  });
}

void StageExchange::receive(Pipeline::Direction direction, const MicroBatch& batch) {
  const std::vector<Buffer> tensors = incoming_tensors(direction, model_.chunk(batch.chunk), batch.workspace);
  if (!tensors.empty()) wait_for([&] { pipeline_->start_receive(direction, tensors)->wait(); });
}

void StageExchange::send(Pipeline::Direction direction, const MicroBatch& batch) {
  const std::vector<ConstBuffer> tensors =
      outgoing_tensors(direction, model_.chunk(batch.chunk), batch.workspace);
  if (!tensors.empty()) sends_[batch.slot].push_back(pipeline_->start_send(direction, tensors));
}

void StageExchange::wait(std::size_t slot) {
  if (sends_[slot].empty()) return;
  wait_for([&] {
    for (const std::unique_ptr<Request>& send : sends_[slot]) send->wait();
  });
  sends_[slot].clear();
}

void StageExchange::finish() {
  if (pipeline_ == nullptr) return;
  for (std::size_t slot = 0; slot < sends_.size(); ++slot) wait(slot);
  wait_for([&] {
    tied_weights_.finish();
    tied_gradients_->finish();
  });
}

}  // namespace lockstep
