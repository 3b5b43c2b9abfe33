// All replicas of all ranks proceed in lockstep. A *sync point* is an op before which they meet: statistics
// (those of batch norm) are added over replicas there, or ranks compute the op together (divided_layers.h).
// Each replica has a workspace of its own. The ops between two sync points run on all threads, then the
// replicas meet; backward passes the sync points in reverse order. With several parts all replicas take the
// same part.
//
// A rank that runs a stage of such a model proceeds in lockstep, too, also where no sync point is in its own
// stage: it receives what a replica takes before its first op, and sends what comes out behind its last one.
// The workers of a stage meet at its sync points; stages wait for each other by these messages alone.
//
// A bucket leaves between the same two sync points on every rank, since collectives have one order on all
// ranks.
#include <fmt/format.h>

#include <algorithm>

#include "gradient_step.h"
#include "lockstep/distributed/divided_layers.h"

namespace lockstep {
namespace {

class LockstepWalk final : public ReplicaWalk {
 public:
  LockstepWalk(ReplicaPass& pass, BucketSender& sender);

  void run(std::span<const Index> rows, bool backward) override;
  BadNumber check(const StepReplica& replica) override;

 private:
  // The work of all replicas together before an op: they add statistics, or compute the op.
  struct SyncPoint {
    Index op = 0;
    std::optional<ScopeSums> forward = {};
    std::optional<ScopeSums> backward = {};
    std::unique_ptr<DividedLayer> divided = nullptr;
  };

  MicroBatch micro_batch_of(StepReplica& replica, bool last) {
    return {.replica = replica,
            .workspace = workspace_of(replica),
            .number = static_cast<Index>(replica.local),
            .slot = replica.local,
            .last = last};
  }
  Workspace& workspace_of(const StepReplica& replica) { return *workspaces_[replica.local]; }
  void forward_pass(bool backward);
  void backward_pass(bool last_part);
  void start_targets();
  void report_idle_threads();
  Index offset_of(Index op) const;
  void sync(SyncPoint& point, bool forward);
  void add_statistics(SyncPoint& point, bool forward);
  void run_divided(const SyncPoint& point, bool forward);

  Index ops_;
  std::vector<Index> sync_ops_;
  std::vector<SyncPoint> syncs_;                        // one for each of them
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // one for each local replica
  std::vector<double> rows_;                            // sums at a sync point, a row for each local replica
};

LockstepWalk::LockstepWalk(ReplicaPass& pass, BucketSender& sender)
    : ReplicaWalk(pass, sender), ops_(std::ssize(model_.ops())), sync_ops_(sync_points(model_, step_.plan)) {
  const Index replicas = step_.plan.replicas;
  for (const Index op : sync_ops_) {
    SyncPoint& point = syncs_.emplace_back(SyncPoint{.op = op});
    const auto tensor = std::ranges::find(step_.plan.divided, op, &DividedTensor::op);
    if (tensor != step_.plan.divided.end()) {
      point.divided = std::make_unique<DividedLayer>(step_.comm, step_.plan, model_, *tensor);
      continue;
    }
    const BatchStatistics& statistics = *model_.op(op).layer->statistics();
    const auto scope = [mode = statistics.mode(), replicas](Index replica) {
      return mode.normalised_with(replica, replicas);
    };
    const auto sums = [&](Index count) {
      return std::vector{ScopeColumns{.columns = count, .scope = scope}};
    };
    point.forward.emplace(step_.comm, step_.plan, sums(statistics.forward_count()));
    point.backward.emplace(step_.comm, step_.plan, sums(statistics.backward_count()));
  }
  for (std::size_t i = 0; i < pass_.replicas().size(); ++i)
    workspaces_.push_back(make_workspace(model_, sync_ops_));
}

void LockstepWalk::run(std::span<const Index> rows, bool backward) {
  for (const SyncPoint& point : syncs_) {
    if (point.divided != nullptr) point.divided->begin_step(rows);
  }
  for (Index part = 0; part < accumulate_; ++part) {
    for (StepReplica& replica : pass_.replicas()) {
      replica.rows = split_evenly(replica.batch->rows, accumulate_, part);
    }
    const auto other = [this] {
      return sender_.time().exchange + pass_.seconds().data + pass_.seconds().idle;
    };
    const double before = other();
    const Stopwatch forward;
    forward_pass(backward);
    pass_.add_forward(forward.seconds() - (other() - before));
    if (!backward) continue;
    if (part == 0) start_targets();
    backward_pass(part + 1 == accumulate_);
  }
  pass_.stages().finish();
}

void LockstepWalk::forward_pass(bool backward) {
  for (std::size_t i = 0; i <= syncs_.size(); ++i) {
    const bool ends = i == syncs_.size();
    const Range ops{i == 0 ? 0 : sync_ops_[i - 1], ends ? ops_ : sync_ops_[i]};
    pass_.for_each_replica([&](Index thread, StepReplica& replica, bool last) {
      const MicroBatch batch = micro_batch_of(replica, last);
      if (i == 0) pass_.prepare(thread, replica);
      if (i == 0 && backward) pass_.find_factor_buffers(replica);
      if (i == 0) pass_.begin_forward(batch);
      batch.workspace.forward(ops);
      if (ends) pass_.end_forward(batch);
    });
    if (!ends) sync(syncs_[i], true);
  }
}

void LockstepWalk::start_targets() {
  for (Index thread = 0; thread < step_.plan.threads; ++thread) {
    const Range mine = step_.plan.thread_replicas(step_.comm.rank(), thread);
    for (StepReplica& replica : pass_.replicas()) {
      if (mine.contains(replica.number) && !replica.rows.empty()) pass_.start_target(thread, replica);
    }
  }
}

// The offset at which the gradients of this op and of those behind it begin.
Index LockstepWalk::offset_of(Index op) const {
  for (Index i = op; i < ops_; ++i) {
    if (const Range own = model_.op(i).params; !own.empty()) return own.begin;
  }
  return step_.plan.gradient_size;
}

// Threads without samples have nothing to add.
void LockstepWalk::report_idle_threads() {
  for (Index thread = 0; thread < step_.plan.threads; ++thread) {
    const Range mine = step_.plan.thread_replicas(step_.comm.rank(), thread);
    const auto idle = [&](const StepReplica& replica) {
      return !mine.contains(replica.number) || replica.rows.empty();
    };
    if (std::ranges::all_of(pass_.replicas(), idle)) {
      sender_.ready_from(thread, 0, step_.plan.gradient_size);
    }
  }
}

void LockstepWalk::backward_pass(bool last_part) {
  if (last_part) report_idle_threads();
  for (std::size_t i = syncs_.size() + 1; i-- > 0;) {
    const bool outputs = i == syncs_.size();
    const Range ops{i == 0 ? 0 : sync_ops_[i - 1] + 1, outputs ? ops_ : sync_ops_[i] + 1};
    const Index first = offset_of(ops.begin);
    pass_.for_each_replica([&](Index thread, StepReplica& replica, bool last) {
      const MicroBatch batch = micro_batch_of(replica, last);
      if (outputs) pass_.begin_backward(batch);
      GradientReadyCallback on_ready;
      if (last_part && last) on_ready = [&](Index from) { sender_.ready_from(thread, from, first); };
      pass_.run_backward(batch, ops, on_ready);
      if (i == 0) pass_.end_backward(batch);
    });
    if (last_part) sender_.send_ready(first);
    if (i > 0) sync(syncs_[i - 1], false);
  }
  for (StepReplica& replica : pass_.replicas()) replica.target.write = Write::kAdd;
}

void LockstepWalk::sync(SyncPoint& point, bool forward) {
  if (point.divided == nullptr) {
    add_statistics(point, forward);
  } else {
    run_divided(point, forward);
  }
}

void LockstepWalk::run_divided(const SyncPoint& point, bool forward) {
  DividedLayer& layer = *point.divided;
  const DividedLayer::Exchange exchange = [this](const std::function<void()>& messages) {
    sender_.sync(messages);
  };
  std::vector<ConstMatrix> given;  // a replica without samples gives and takes nothing
  std::vector<Matrix> wanted;
  for (const StepReplica& replica : pass_.replicas()) {
    Workspace& workspace = workspace_of(replica);
    const bool none = replica.rows.empty();
    given.push_back(none      ? ConstMatrix(nullptr, 0, 0)
                    : forward ? workspace.input(point.op)
                              : ConstMatrix(workspace.gradient(point.op)));
    wanted.push_back(none      ? Matrix(nullptr, 0, 0)
                     : forward ? workspace.output(point.op)
                               : workspace.input_gradient(point.op));
  }
  const ModelValues& values = pass_.replicas().front().values;
  if (forward) {
    layer.forward(values, given, wanted, exchange);
  } else {
    layer.backward(values, given, wanted, step_.training.strategy.synchronous()->divided_gradients(),
                   exchange);
  }
}

void LockstepWalk::add_statistics(SyncPoint& point, bool forward) {
  ScopeSums& sums = *(forward ? point.forward : point.backward);
  const auto columns = static_cast<std::size_t>(sums.columns());
  const auto row = [&](const StepReplica& replica) {
    return std::span(rows_).subspan(replica.local * columns, columns);
  };
  rows_.assign(pass_.replicas().size() * columns, 0.0);
  for (const StepReplica& replica : pass_.replicas()) {
    if (replica.rows.empty()) continue;
    const OpSums& own = workspace_of(replica).sums(point.op);
    std::ranges::copy(forward ? own.own_forward : own.own_backward, row(replica).begin());
  }
  sender_.sync([&] { sums.combine(rows_); });
  for (const StepReplica& replica : pass_.replicas()) {
    OpSums& all = workspace_of(replica).sums(point.op);
    std::ranges::copy(row(replica), (forward ? all.forward : all.backward).begin());
    if (forward) pass_.add_sums(replica.number, point.op, row(replica));
  }
}

// The sums of all replicas in the last part of their samples are still there, and so are the outputs of
// divided layers: a replica can go on from them alone.
BadNumber LockstepWalk::check(const StepReplica& in_step) {
  StepReplica replica = in_step;
  replica.rows = split_evenly(replica.batch->rows, accumulate_, accumulate_ - 1);
  Workspace workspace(model_, replica.rows.size(), ActivationRetention::kOutputs, sync_ops_);
  Workspace& before = workspace_of(replica);
  for (const Index op : sync_ops_) workspace.sums(op).forward = before.sums(op).forward;
  const MicroBatch batch{.replica = replica, .workspace = workspace};
  pass_.begin_forward(batch, {});
  for (const SyncPoint& point : syncs_) {
    if (point.divided == nullptr) continue;
    std::ranges::copy(before.output(point.op).values(), workspace.output(point.op).data());
  }
  workspace.forward({0, ops_});
  pass_.stages().send(Pipeline::Direction::kForward, batch);
  pass_.stages().finish();
  BadNumber found = check_values(model_, workspace, replica, pass_.tally_of(replica));
  if (found.order == std::ssize(model_.whole().ops()) && accumulate_ > 1) {
    found.text = fmt::format(
        "replica {}: a value in an earlier part of its samples, or the loss, is not finite", replica.number);
  }
  return found;
}

}  // namespace

std::unique_ptr<ReplicaWalk> make_lockstep_walk(ReplicaPass& pass, BucketSender& sender) {
  return std::make_unique<LockstepWalk>(pass, sender);
}

}  // namespace lockstep
