// The gradient step computes the gradients of all replicas that this rank hosts. Words: a *part* is one of
// the `accumulate` pieces into which the samples of a replica are cut; its gradients are added to those of
// the parts before. A *sync point* is an op before which replicas meet (lockstep_walk.cpp).
//
// Without sync points each thread takes its replicas one after the other, each through all parts, forward and
// backward, with one workspace for each thread: PerReplicaWalk, below.
//
// Gradients of a range of the arena are ready once the last replica with samples of every thread has passed
// it in its last part. Only then does the callback report to BucketSender, which sends complete buckets while
// backward goes on.
#include "gradient_step.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/trace.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// With targets for each position, a record counts with the share of its positions that is right.
double count_correct_records(const Loss& loss, const MetricRows& records) {
  if (&loss.of_position() == &loss)
    return count_correct(loss.targets(), records.outputs, records.targets, records.weights);
  thread_local PositionRows positions;
  const Index count = loss.form().positions;
  positions.fill(records, count, loss.class_weights());
  const MetricRows rows = positions.rows();
  return count_correct(loss.targets(), rows.outputs, rows.targets, rows.weights) / static_cast<double>(count);
}

class PerReplicaWalk final : public ReplicaWalk {
 public:
  PerReplicaWalk(ReplicaPass& pass, BucketSender& sender) : ReplicaWalk(pass, sender) {
    for (Index i = 0; i < std::min(step_.plan.threads, std::ssize(pass_.replicas())); ++i)
      workspaces_.push_back(make_workspace(model_));
  }

  void run(std::span<const Index> /*rows*/, bool backward) override {
    pass_.for_each_replica(
        [&](Index thread, StepReplica& replica, bool last) { run_replica(thread, replica, last, backward); });
    for (Index thread = 0; backward && thread < step_.plan.threads; ++thread) sender_.ready_from(thread, 0);
  }
  BadNumber check(const StepReplica& replica) override { return check_again(pass_, replica); }

 private:
  void run_replica(Index thread, StepReplica& replica, bool last, bool backward) {
    pass_.prepare(thread, replica);
    if (backward) pass_.start_target(thread, replica);
    const Index parts = std::min(accumulate_, replica.batch->rows);
    for (Index i = 0; i < parts; ++i) {
      replica.rows = split_evenly(replica.batch->rows, parts, i);
      const MicroBatch batch{
          .replica = replica, .workspace = *at(workspaces_, thread), .thread = thread, .last = last};
      if (backward) pass_.find_factor_buffers(replica);
      pass_.forward(batch);
      if (!backward) continue;
      GradientReadyCallback on_ready;
      if (last && i + 1 == parts) on_ready = [&](Index from) { sender_.ready_from(thread, from); };
      pass_.backward(batch, on_ready);
      replica.target.write = Write::kAdd;
    }
  }

  std::vector<std::unique_ptr<Workspace>> workspaces_;  // one for each thread
};

std::unique_ptr<ReplicaWalk> make_walk(ReplicaPass& pass, BucketSender& sender) {
  if (runs_in_lockstep(pass.step().training.model, pass.step().plan)) return make_lockstep_walk(pass, sender);
  if (pass.step().training.pipeline != nullptr) return make_pipeline_walk(pass, sender);
  return std::make_unique<PerReplicaWalk>(pass, sender);
}

}  // namespace

ReplicaPass::ReplicaPass(const StepContext& step)
    : step_(step),
      context_(step.training),
      single_values_(context_.model.whole(), step.plan.replicas, context_.settings.accumulate),
      factored_(context_.strategy.factored_gradients()),
      gradients_(step.sums, step.plan, step.comm.rank(), interleaves(context_.model, step.plan),
                 factored_tensors(), [this] { return context_.strategy.gradient_arena(); }),
      stages_(step) {
  const Range hosted = step.plan.hosted_by(step.comm.rank());
  for (Index i = hosted.begin; i < hosted.end; ++i) {
    replicas_.push_back({.number = i, .local = replicas_.size()});
  }
  tallies_.resize(replicas_.size());
  const std::vector<Index> shared = sync_points(context_.model, step.plan);
  for (Index i = 0; i < std::ssize(context_.model.ops()); ++i) {
    if (context_.model.op(i).layer->statistics() == nullptr) continue;
    if (!std::ranges::binary_search(shared, i)) own_statistics_.push_back(i);
  }
}

void ReplicaPass::begin_step() {
  gradients_.begin_step();
  context_.states.begin_step();
  stages_.begin_step();
  std::ranges::fill(tallies_, LossSums{});
  seconds_ = {};
}

void ReplicaPass::begin(const StepBatch& batch, std::span<const Scalar> weights) {
  number_ = batch.step;
  single_values_.look(batch.rows);
  for (StepReplica& replica : replicas_) {
    replica.values = {.weights = weights.empty() ? context_.strategy.weights(replica.number) : weights,
                      .state = context_.states.of(replica.number)};
    replica.batch = &batch.replicas[replica.local];
    replica.rows = {0, replica.batch->rows};
  }
  prepare_weights();
}

// Replicas with the same weights are neighbours. The replicas of a stage have all the same.
void ReplicaPass::prepare_weights() {
  if (replicas_.empty()) return;
  const ModelValues shared = stages_.share(replicas_.front().values);
  std::size_t arenas = 0;
  const StepReplica* last = nullptr;
  for (StepReplica& replica : replicas_) {
    replica.values.borrowed = shared.borrowed;
    if (last != nullptr && last->values.weights.data() == replica.values.weights.data()) {
      replica.values.rounded = last->values.rounded;
      replica.values.borrowed_rounded = last->values.borrowed_rounded;
      replica.values.version = last->values.version;
    } else {
      if (arenas == weights_.size()) weights_.emplace_back(context_.model);
      replica.values = weights_[arenas++].prepare(replica.values, context_.team);
    }
    last = &replica;
  }
}

void ReplicaPass::for_each_replica(const ReplicaWork& work) {
  const Index first = step_.plan.hosted_by(step_.comm.rank()).begin;
  context_.team.run([&](int thread) {
    const Range mine = step_.plan.thread_replicas(step_.comm.rank(), thread);
    const std::span<StepReplica> replicas = std::span(replicas_).subspan(
        static_cast<std::size_t>(mine.begin - first), static_cast<std::size_t>(mine.size()));
    auto left =
        std::ranges::count_if(replicas, [](const StepReplica& replica) { return !replica.rows.empty(); });
    for (StepReplica& replica : replicas) {
      if (!replica.rows.empty()) work(thread, replica, --left == 0);
    }
  });
}

void ReplicaPass::prepare(Index thread, const StepReplica& replica) {
  if (replica.rows.begin > 0 || replica.batch->prepare == nullptr) return;
  const TraceSpan span(TraceKind::kPrepare, replica.number);
  if (thread != 0) return replica.batch->prepare();
  const Stopwatch watch;
  note_phase(Phase::kData);
  replica.batch->prepare();
  note_phase(Phase::kCompute);
  seconds_.data += watch.seconds();
}

// The loss is that of the last stage, and its part of the arena is zero elsewhere.
void ReplicaPass::start_target(Index thread, StepReplica& replica) {
  replica.target = gradients_.begin_replica(thread, replica.number);
  if (!needs_targets(context_.model) && replica.target.write == Write::kReplace) {
    at(replica.target.arena, step_.plan.loss_offset) = 0;
  }
}

// A part of the replica's samples has a part of its factor buffers.
void ReplicaPass::find_factor_buffers(StepReplica& replica) const {
  const std::span<const FactoredTensor> tensors = factored_tensors();
  if (tensors.empty()) return;
  replica.factors.assign(context_.model.ops().size(), {});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FactorBuffers buffers = factored_->buffers(i, replica.number);
    at(replica.factors, tensors[i].op) = buffers.from_row(replica.rows.begin, tensors[i].in);
  }
}

std::optional<GradientLimit> ReplicaPass::limit_of(const MicroBatch& batch) const {
  if (factored_ == nullptr) return {};
  const bool more_parts = batch.replica.rows.end < batch.replica.batch->rows;
  const bool more_replicas = step_.sums == LocalSums::kOneSum && !batch.last;
  return GradientLimit{factored_->max_gradient(), batch.replica.batch->rows, !more_parts && !more_replicas};
}

void ReplicaPass::forward(const MicroBatch& batch) {
  begin_forward(batch);
  const Stopwatch forward;
  batch.workspace.forward(ops_of(batch));
  if (batch.thread == 0) add_forward(forward.seconds());
  end_forward(batch);
}

void ReplicaPass::backward(const MicroBatch& batch, const GradientReadyCallback& on_ready) {
  begin_backward(batch);
  run_backward(batch, ops_of(batch), on_ready);
  end_backward(batch);
}

void ReplicaPass::begin_forward(const MicroBatch& batch, const std::optional<GradientLimit>& limit) {
  const StepReplica& replica = batch.replica;
  const Index columns = context_.model.input().size();
  // A stage that needs no features has none.
  const bool has_features = replica.batch->features.size() > 0;
  const Scalar* x = has_features ? replica.batch->features.data() + replica.rows.begin * columns : nullptr;
  stages_.begin_forward(batch);
  batch.workspace.begin({.values = replica.values,
                         .x = ConstMatrix(x, replica.rows.size(), columns),
                         .batch = {.training = true,
                                   .seed = context_.settings.seed,
                                   .step = number_,
                                   .replica = replica.number,
                                   .first_row = replica.rows.begin,
                                   .lengths = replica.batch->lengths_of(replica.rows)},
                         .factors = replica.factors,
                         .limit = limit});
  stages_.receive(Pipeline::Direction::kForward, batch);
}

void ReplicaPass::add_sums(Index replica, Index op, std::span<const double> sums) {
  const Index number = context_.model.number_in_whole(op);
  if (single_values_.are_followed(replica, number)) context_.states.add(replica, op, sums);
}

void ReplicaPass::end_forward(const MicroBatch& batch) {
  const Index first = context_.model.first_op_of_chunk(batch.chunk);
  const Range ops{first, first + ops_of(batch).end};
  for (const Index op : own_statistics_) {
    if (ops.contains(op)) add_sums(batch.replica.number, op, batch.workspace.sums(op - first).forward);
  }
  stages_.send(Pipeline::Direction::kForward, batch);
}

void ReplicaPass::begin_backward(const MicroBatch& batch) {
  if (context_.pipeline != nullptr) note_phase(Phase::kStageBackward, batch.number);
  if (needs_targets(context_.model.chunk(batch.chunk))) {
    evaluate_loss(batch);
  } else {
    stages_.receive(Pipeline::Direction::kBackward, batch);
  }
  batch.workspace.begin_backward(batch.replica.target.arena, batch.replica.target.write);
  stages_.begin_backward(batch);
}

void ReplicaPass::evaluate_loss(const MicroBatch& batch) {
  const StepReplica& replica = batch.replica;
  const TraceSpan span(TraceKind::kLoss, replica.number);
  const Index columns = context_.settings.target_columns;
  const ConstMatrix targets(replica.batch->targets.data() + replica.rows.begin * columns, replica.rows.size(),
                            columns);
  Matrix gradient = batch.workspace.output_gradient();
  const SampleWeights weights = replica.batch->weights_of(replica.rows);
  LossSums tally{.weight = weights.sum(replica.rows.size())};
  tally.loss = evaluate_members(context_.loss, context_.model.members(), batch.workspace.trained_outputs(),
                                targets, weights, gradient);
  const DebugOptions& debug = context_.settings.debug;
  const Range bad_steps{debug.nan_step, debug.nan_step + debug.nan_steps};
  if (replica.number == debug.nan_replica && bad_steps.contains(number_)) {
    tally.loss = std::numeric_limits<double>::quiet_NaN();
  }
  const ConstMatrix outputs = batch.workspace.outputs();
  tally.correct =
      count_correct_records(context_.loss, {.outputs = outputs, .targets = targets, .weights = weights});
  tallies_[replica.local].add(tally);
  // Before backward: the loss leaves with the first bucket.
  Scalar& loss_sum = at(replica.target.arena, step_.plan.loss_offset);
  loss_sum = (replica.target.write == Write::kAdd ? loss_sum : 0) + static_cast<Scalar>(tally.loss);
}

void ReplicaPass::run_backward(const MicroBatch& batch, Range ops, const GradientReadyCallback& on_ready) {
  const GradientTarget& target = batch.replica.target;
  batch.workspace.backward(ops, target.arena, target.write, on_ready);
  if (factored_ != nullptr && !batch.workspace.good_gradient()) factored_->bad_gradient();
}

void ReplicaPass::end_backward(const MicroBatch& batch) {
  stages_.send(Pipeline::Direction::kBackward, batch);
  stages_.send_tied_gradients(batch);
}

GradientStep::GradientStep(const StepContext& step)
    : step_(step),
      pass_(step_),
      sender_(step.comm, step.plan, step.training.strategy, pass_.gradients(), step.training.team,
              step.training.progress),
      walk_(make_walk(pass_, sender_)) {}

void GradientStep::run(const StepBatch& batch, Measured measured) {
  pass_.begin_step();
  sender_.begin_step(measured);
  pass_.begin(batch, {});
  walk_->run(batch.rows, true);
  sender_.end_step();
}

void GradientStep::measure(const StepBatch& batch, std::span<const Scalar> weights) {
  pass_.begin(batch, weights);
  walk_->run(batch.rows, false);
}

BadNumber GradientStep::find_bad_number(const StepBatch& batch) {
  pass_.begin(batch, {});
  BadNumber first;
  for (const StepReplica& replica : pass_.replicas()) {
    if (replica.rows.empty()) continue;
    const BadNumber found = walk_->check(replica);
    if (found.order < first.order) first = found;
  }
  pass_.stages().finish();
  return first;
}

}  // namespace lockstep
