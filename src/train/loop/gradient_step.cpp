// The gradient step computes the gradients of all replicas that this rank hosts. Words: a *part* is one of
// the `accumulate` pieces into which the samples of a replica are cut; its gradients are added to those of
// the parts before. A *sync point* is an op before which statistics (those of batch norm) are added over
// replicas.
//
// Without sync points each thread takes its replicas one after the other, each through all parts, forward and
// backward, with one workspace for each thread (run_per_replica). With sync points all replicas of all ranks
// proceed in lockstep, with one workspace for each replica: the ops between two sync points run on all
// threads, then sync() adds the sums over replicas and ranks (run_together). Backward passes the sync points
// in reverse order.
//
// A rank that runs a stage of such a model proceeds in lockstep, too, also where no sync point is in its own
// stage: it receives what a replica takes before its first op, and sends what comes out behind its last one.
// The workers of a stage meet at its sync points; stages wait for each other by these messages alone.
//
// Gradients of a range of the arena are ready once the last replica with samples of every thread has passed
// it in its last part. Only then does the callback report to BucketSender, which sends complete buckets while
// backward goes on. With sync points a bucket leaves between the same two of them on every rank, since
// collectives must have one order on all ranks.
#include "lockstep/train/loop/gradient_step.h"

#include <algorithm>

#include "lockstep/base/timer.h"
#include "lockstep/base/trace.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/nn/ensemble.h"

namespace lockstep {

GradientStep::GradientStep(const GradientStepContext& context)
    : context_(context),
      hosted_(context.plan.hosted_by(context.comm.rank())),
      ops_(std::ssize(context.model.ops())),
      sync_points_(sync_points(context.model, context.plan)),
      together_(runs_in_lockstep(context.model, context.plan)),
      single_values_(context.model.whole(), context.plan.replicas, context.accumulate),
      factored_(context.strategy.factored_gradients()),
      gradients_(context.sums, context.plan, context.comm.rank(), interleaves(context.model, context.plan),
                 factored_tensors(), [this] { return context_.strategy.gradient_arena(); }),
      sender_(context.comm, context.plan, context.strategy, gradients_, context.team, context.progress),
      tied_weights_(context.pipeline, context.model),
      tallies_(static_cast<std::size_t>(hosted_.size())) {
  const Index replicas = context.plan.replicas;
  syncs_.resize(sync_points_.size());
  const auto point_of = [&](Index op) -> SyncPoint& {
    return at(syncs_, std::ranges::lower_bound(sync_points_, op) - sync_points_.begin());
  };
  for (const DividedTensor& tensor : context.plan.divided) {
    point_of(tensor.op).divided =
        std::make_unique<DividedLayer>(context.comm, context.plan, context.model, tensor);
  }
  for (Index i = 0; i < ops_; ++i) {
    const BatchStatistics* statistics = context.model.op(i).layer->statistics();
    if (statistics == nullptr) continue;
    if (!std::ranges::binary_search(sync_points_, i)) {
      own_statistics_.push_back(i);
      continue;
    }
    const auto scope = [mode = statistics->mode(), replicas](Index replica) {
      return mode.normalised_with(replica, replicas);
    };
    const auto sums = [&](Index count) {
      return std::vector{ScopeColumns{.columns = count, .scope = scope}};
    };
    point_of(i).forward.emplace(context.comm, context.plan, sums(statistics->forward_count()));
    point_of(i).backward.emplace(context.comm, context.plan, sums(statistics->backward_count()));
  }
  const Index rows = divide_up(context.max_rows, context.accumulate);
  alive_ = {together() ? hosted_.size() : std::min(context.plan.threads, hosted_.size())};
  if (context.pipeline != nullptr) {
    const Index micro_batches = hosted_.size() * (together() ? 1 : context.accumulate);
    alive_ =
        chunks_alive(context.schedule, context.pipeline->stage(), context.pipeline->stages(), micro_batches);
    tied_gradients_.emplace(*context.pipeline, context.model, context.schedule, micro_batches);
  }
  for (Index chunk = 0; chunk < context.model.chunks(); ++chunk) {
    first_workspaces_.push_back(std::ssize(workspaces_));
    for (Index i = 0; i < at(alive_, chunk); ++i) {
      workspaces_.push_back(std::make_unique<Workspace>(context.model.chunk(chunk), rows,
                                                        ActivationRetention::kForTraining, sync_points_));
    }
  }
  sends_.resize(workspaces_.size());
  for (Index i = hosted_.begin; i < hosted_.end; ++i) replicas_.push_back({.number = i});
}

void GradientStep::run(const StepBatch& batch, Measured measured) {
  gradients_.begin_step();
  context_.states.begin_step();
  sender_.begin_step(measured);
  std::ranges::fill(tallies_, LossSums{});
  data_seconds_ = 0;
  forward_seconds_ = 0;
  idle_seconds_ = 0;
  begin(batch);
  prepare_weights();
  walk(true);
  sender_.end_step();
}

void GradientStep::measure(const StepBatch& batch, std::span<const Scalar> weights) {
  begin(batch);
  for (Replica& replica : replicas_) replica.values.weights = weights;
  prepare_weights();
  walk(false);
}

void GradientStep::begin(const StepBatch& batch) {
  step_ = batch.step;
  single_values_.look(batch.rows);
  for (const SyncPoint& point : syncs_) {
    if (point.divided != nullptr) point.divided->begin_step(batch.rows);
  }
  for (Replica& replica : replicas_) {
    replica.values = {.weights = context_.strategy.weights(replica.number),
                      .state = context_.states.of(replica.number)};
    replica.batch = &batch.replicas[local(replica)];
    replica.rows = {0, replica.batch->rows};
  }
}

// Replicas with the same weights are neighbours.
void GradientStep::prepare_weights() {
  if (!replicas_.empty()) {  // the replicas of a stage have the same
    const Stopwatch idle;
    const ModelValues shared = tied_weights_.share(replicas_.front().values);
    if (context_.pipeline != nullptr) idle_seconds_ += idle.seconds();
    for (Replica& replica : replicas_) replica.values.borrowed = shared.borrowed;
  }
  std::size_t arenas = 0;
  const Replica* last = nullptr;
  for (Replica& replica : replicas_) {
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

void GradientStep::walk(bool backward) {
  if (together()) {
    for (Index part = 0; part < context_.accumulate; ++part) run_together(part, backward);
    wait_for_all_sends();
    return;
  }
  if (context_.pipeline != nullptr) return walk_stage(backward);
  for_each_replica(
      [&](Index thread, Replica& replica, bool last) { run_per_replica(thread, replica, last, backward); });
  for (Index thread = 0; backward && thread < context_.plan.threads; ++thread) {
    sender_.ready_from(thread, 0);
  }
}

// Each thread takes those of its replicas that have samples, in order.
void GradientStep::for_each_replica(const ReplicaWork& work) {
  context_.team.run([&](int thread) {
    const Range mine = context_.plan.thread_replicas(context_.comm.rank(), thread);
    const std::span<Replica> replicas = std::span(replicas_).subspan(
        static_cast<std::size_t>(mine.begin - hosted_.begin), static_cast<std::size_t>(mine.size()));
    auto left = std::ranges::count_if(replicas, [](const Replica& replica) { return !replica.rows.empty(); });
    for (Replica& replica : replicas) {
      if (!replica.rows.empty()) work(thread, replica, --left == 0);
    }
  });
}

Workspace& GradientStep::workspace_of(Index thread, const Replica& replica) {
  return *workspaces_[together() ? local(replica) : static_cast<std::size_t>(thread)];
}

// Prepares the samples of a replica with the first of its parts.
void GradientStep::prepare(Index thread, const Replica& replica) {
  if (replica.rows.begin > 0 || replica.batch->prepare == nullptr) return;
  const TraceSpan span(TraceKind::kPrepare, replica.number);
  if (thread != 0) return replica.batch->prepare();
  const Stopwatch watch;
  note_phase(Phase::kData);
  replica.batch->prepare();
  note_phase(Phase::kCompute);
  data_seconds_ += watch.seconds();
}

void GradientStep::start_pass(Workspace& workspace, const Replica& replica,
                              const std::optional<GradientLimit>& limit) const {
  const Index columns = context_.model.input().size();
  // A stage that needs no features has none.
  const bool has_features = replica.batch->features.size() > 0;
  const Scalar* x = has_features ? replica.batch->features.data() + replica.rows.begin * columns : nullptr;
  workspace.begin({.values = replica.values,
                   .x = ConstMatrix(x, replica.rows.size(), columns),
                   .batch = {.training = true,
                             .seed = context_.seed,
                             .step = step_,
                             .replica = replica.number,
                             .first_row = replica.rows.begin},
                   .factors = replica.factors,
                   .limit = limit});
}

// A part of the replica's samples has a part of its factor buffers.
void GradientStep::find_factor_buffers(Replica& replica) const {
  const std::span<const FactoredTensor> tensors = factored_tensors();
  if (tensors.empty()) return;
  replica.factors.assign(static_cast<std::size_t>(ops_), {});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FactorBuffers buffers = factored_->buffers(i, replica.number);
    at(replica.factors, tensors[i].op) = buffers.from_row(replica.rows.begin, tensors[i].in);
  }
}

void GradientStep::evaluate_loss(Workspace& workspace, const Replica& replica) {
  const TraceSpan span(TraceKind::kLoss, replica.number);
  const Index columns = context_.target_columns;
  const ConstMatrix targets(replica.batch->targets.data() + replica.rows.begin * columns, replica.rows.size(),
                            columns);
  const ConstMatrix outputs = workspace.outputs();
  Matrix gradient = workspace.output_gradient();
  const SampleWeights weights = replica.batch->weights_of(replica.rows);
  LossSums tally{.weight = weights.sum(replica.rows.size())};
  tally.loss = evaluate_members(context_.loss, context_.model.members(), workspace.trained_outputs(), targets,
                                weights, gradient);
  if (replica.number == context_.bad_replica && context_.bad_steps.contains(step_)) {
    tally.loss = std::numeric_limits<double>::quiet_NaN();
  }
  tally.correct = count_correct(context_.loss.targets(), outputs, targets, weights);
  tallies_[local(replica)].add(tally);
  // Before backward: the loss leaves with the first bucket.
  Scalar& loss_sum = at(replica.target.arena, context_.plan.loss_offset);
  loss_sum = (replica.target.write == Write::kAdd ? loss_sum : 0) + static_cast<Scalar>(tally.loss);
}

void GradientStep::add_sums(Index replica, Index op, std::span<const double> sums) {
  const Index number = context_.model.number_in_whole(op);
  if (single_values_.are_followed(replica, number)) context_.states.add(replica, op, sums);
}

// `workspace`: of a chunk of the model.
void GradientStep::add_own_sums(Workspace& workspace, Index replica, Index chunk) {
  const Index first = context_.model.first_op_of_chunk(chunk);
  const Range ops{first, first + std::ssize(context_.model.chunk(chunk).ops())};
  for (const Index op : own_statistics_) {
    if (ops.contains(op)) add_sums(replica, op, workspace.sums(op - first).forward);
  }
}

void GradientStep::run_per_replica(Index thread, Replica& replica, bool last, bool backward) {
  Workspace& workspace = workspace_of(thread, replica);
  prepare(thread, replica);
  if (backward) start_target(thread, replica);
  const Index parts = std::min(context_.accumulate, replica.batch->rows);
  for (Index i = 0; i < parts; ++i) {
    replica.rows = split_evenly(replica.batch->rows, parts, i);
    const Stopwatch forward;
    if (backward) find_factor_buffers(replica);
    start_pass(workspace, replica, limit_of(replica, last));
    workspace.forward({0, ops_});
    add_own_sums(workspace, replica.number);
    if (thread == 0) forward_seconds_ += forward.seconds();
    if (!backward) continue;
    evaluate_loss(workspace, replica);
    workspace.begin_backward(replica.target.arena, replica.target.write);
    GradientReadyCallback on_ready;
    if (last && i + 1 == parts) on_ready = [&](Index from) { sender_.ready_from(thread, from); };
    run_backward(workspace, {0, ops_}, replica, on_ready);
    replica.target.write = Write::kAdd;
  }
}

void GradientStep::run_together(Index part, bool backward) {
  for (Replica& replica : replicas_) {
    replica.rows = split_evenly(replica.batch->rows, context_.accumulate, part);
  }
  const auto other = [this] { return sender_.time().exchange + data_seconds_ + idle_seconds_; };
  const double before = other();
  const Stopwatch forward;
  forward_pass(backward);
  forward_seconds_ += forward.seconds() - (other() - before);
  if (!backward) return;
  if (part == 0) start_targets();
  backward_pass(part + 1 == context_.accumulate);
}

// In lockstep, a replica's samples of the part under way.
GradientStep::MicroBatch GradientStep::micro_batch_of(Replica& replica, bool last) const {
  const std::size_t number = local(replica);
  return {.number = static_cast<Index>(number),
          .replica = replica,
          .rows = replica.rows,
          .last = last,
          .workspace = number};
}

void GradientStep::forward_pass(bool backward) {
  for (std::size_t i = 0; i <= sync_points_.size(); ++i) {
    const Range ops{i == 0 ? 0 : sync_points_[i - 1], i == sync_points_.size() ? ops_ : sync_points_[i]};
    for_each_replica([&](Index thread, Replica& replica, bool last) {
      Workspace& workspace = workspace_of(thread, replica);
      if (i == 0) prepare(thread, replica);
      if (i == 0 && backward) find_factor_buffers(replica);
      if (i == 0) enter_stage(micro_batch_of(replica, last));
      workspace.forward(ops);
      if (i < sync_points_.size()) return;
      add_own_sums(workspace, replica.number);
      send_on(Pipeline::Direction::kForward, micro_batch_of(replica, last));
    });
    if (i < sync_points_.size()) sync(i, true);
  }
}

// The loss is that of the last stage, and its part of the arena is zero elsewhere.
void GradientStep::start_target(Index thread, Replica& replica) {
  replica.target = gradients_.begin_replica(thread, replica.number);
  if (!has_loss() && replica.target.write == Write::kReplace) {
    at(replica.target.arena, context_.plan.loss_offset) = 0;
  }
  replica.first_write = replica.target.write;
}

void GradientStep::start_targets() {
  for (Index thread = 0; thread < context_.plan.threads; ++thread) {
    const Range mine = context_.plan.thread_replicas(context_.comm.rank(), thread);
    for (Index number = mine.begin; number < mine.end; ++number) {
      Replica& replica = at(replicas_, number - hosted_.begin);
      if (!replica.rows.empty()) start_target(thread, replica);
    }
  }
}

// The offset at which the gradients of this op and of those behind it begin.
Index GradientStep::offset_of(Index op) const {
  for (Index i = op; i < ops_; ++i) {
    if (const Range own = context_.model.op(i).params; !own.empty()) return own.begin;
  }
  return context_.plan.gradient_size;
}

// `last`: the thread has no further replica with samples in this part.
std::optional<GradientLimit> GradientStep::limit_of(const Replica& replica, bool last) const {
  if (factored_ == nullptr) return {};
  const bool more_parts = replica.rows.end < replica.batch->rows;
  const bool more_replicas = context_.sums == LocalSums::kOneSum && !last;
  return GradientLimit{factored_->max_gradient(), replica.batch->rows, !more_parts && !more_replicas};
}

void GradientStep::run_backward(Workspace& workspace, Range ops, const Replica& replica,
                                const GradientReadyCallback& on_ready) {
  workspace.backward(ops, replica.target.arena, replica.target.write, on_ready);
  if (factored_ != nullptr && !workspace.good_gradient()) factored_->bad_gradient();
}

// A bucket leaves between the same two sync points on all ranks: collectives keep one order.
void GradientStep::backward_pass(bool last_part) {
  for (Index thread = 0; last_part && thread < context_.plan.threads; ++thread) {
    const Range mine = context_.plan.thread_replicas(context_.comm.rank(), thread);
    const auto idle = [&](const Replica& replica) {
      return !mine.contains(replica.number) || replica.rows.empty();
    };
    if (std::ranges::all_of(replicas_, idle)) sender_.ready_from(thread, 0, context_.plan.gradient_size);
  }
  for (std::size_t i = sync_points_.size() + 1; i-- > 0;) {
    const bool outputs = i == sync_points_.size();
    const Range ops{i == 0 ? 0 : sync_points_[i - 1] + 1, outputs ? ops_ : sync_points_[i] + 1};
    const Index first = offset_of(ops.begin);
    for_each_replica([&](Index thread, Replica& replica, bool last) {
      Workspace& workspace = workspace_of(thread, replica);
      if (outputs) begin_backward(micro_batch_of(replica, last), workspace);
      GradientReadyCallback on_ready;
      if (last_part && last) on_ready = [&](Index from) { sender_.ready_from(thread, from, first); };
      run_backward(workspace, ops, replica, on_ready);
      if (i == 0) end_backward(micro_batch_of(replica, last));
    });
    if (last_part) sender_.send_ready(first);
    if (i > 0) sync(i - 1, false);
  }
  for (Replica& replica : replicas_) replica.target.write = Write::kAdd;
}

void GradientStep::sync(std::size_t point, bool forward) {
  if (syncs_[point].divided == nullptr) {
    add_statistics(point, forward);
  } else {
    run_divided(point, forward);
  }
}

void GradientStep::run_divided(std::size_t point, bool forward) {
  const Index op = sync_points_[point];
  DividedLayer& layer = *syncs_[point].divided;
  const DividedLayer::Exchange exchange = [this](const std::function<void()>& messages) {
    sender_.sync(messages);
  };
  std::vector<ConstMatrix> given;  // a replica without samples gives and takes nothing
  std::vector<Matrix> wanted;
  for (const Replica& replica : replicas_) {
    Workspace& workspace = *workspaces_[local(replica)];
    const bool none = replica.rows.empty();
    given.push_back(none      ? ConstMatrix(nullptr, 0, 0)
                    : forward ? workspace.input(op)
                              : ConstMatrix(workspace.gradient(op)));
    wanted.push_back(none      ? Matrix(nullptr, 0, 0)
                     : forward ? workspace.output(op)
                               : workspace.input_gradient(op));
  }
  const ModelValues& values = replicas_.front().values;
  if (forward) {
    layer.forward(values, given, wanted, exchange);
  } else {
    layer.backward(values, given, wanted, context_.strategy.synchronous()->divided_gradients(), exchange);
  }
}

void GradientStep::add_statistics(std::size_t point, bool forward) {
  ScopeSums& sums = *(forward ? syncs_[point].forward : syncs_[point].backward);
  const Index op = sync_points_[point];
  const auto columns = static_cast<std::size_t>(sums.columns());
  const auto row = [&](const Replica& replica) {
    return std::span(rows_).subspan(local(replica) * columns, columns);
  };
  rows_.assign(replicas_.size() * columns, 0.0);
  for (const Replica& replica : replicas_) {
    if (replica.rows.empty()) continue;
    const OpSums& own = workspaces_[local(replica)]->sums(op);
    std::ranges::copy(forward ? own.own_forward : own.own_backward, row(replica).begin());
  }
  sender_.sync([&] { sums.combine(rows_); });
  for (const Replica& replica : replicas_) {
    OpSums& all = workspaces_[local(replica)]->sums(op);
    std::ranges::copy(row(replica), (forward ? all.forward : all.backward).begin());
    if (forward) add_sums(replica.number, op, row(replica));
  }
}

}  // namespace lockstep
