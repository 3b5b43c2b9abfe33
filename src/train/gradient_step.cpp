#include "lockstep/train/gradient_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "lockstep/base/timer.h"

namespace lockstep {
namespace {

constexpr Index kNothingDone = std::numeric_limits<Index>::max();
constexpr Index kAllDone = -1;

}  // namespace

GradientStep::GradientStep(const GradientStepContext& context)
    : context_(context),
      gradients_(context.reduction, context.plan, context.comm.rank()),
      tallies_(static_cast<std::size_t>(
          context.plan.hosted[static_cast<std::size_t>(context.comm.rank())].size())) {
  const Index rows = (context.most_rows + context.accumulate - 1) / context.accumulate;
  for (Index thread = 0; thread < context.plan.threads; ++thread) {
    lanes_.push_back(std::make_unique<Lane>(context.model, rows));
  }
}

void GradientStep::run(const StepBatch& batch, bool measure_waiting) {
  buckets_sent_ = 0;
  measure_waiting_ = measure_waiting && context_.comm.size() > 1;
  time_ = {};
  gradients_.begin_step();
  std::ranges::fill(tallies_, Tally{});
  for (const auto& lane : lanes_) lane->at_layer = kNothingDone;
  context_.team.run([&](int thread) { run_thread(thread, batch); });
  send_ready_buckets();
}

void GradientStep::run_thread(Index thread, const StepBatch& batch) {
  const Range mine = context_.plan.thread_replicas(context_.comm.rank(), thread);
  const Index first = context_.plan.hosted[static_cast<std::size_t>(context_.comm.rank())].begin;
  const auto batch_of = [&](Index replica) -> const ReplicaBatch& {
    return batch.replicas[static_cast<std::size_t>(replica - first)];
  };
  Index last = mine.end - 1;
  while (last >= mine.begin && batch_of(last).rows == 0) --last;
  for (Index replica = mine.begin; replica <= last; ++replica) {
    if (batch_of(replica).rows > 0) run_replica(thread, batch_of(replica), replica, replica == last);
  }
  layer_done(thread, kAllDone);
}

void GradientStep::run_replica(Index thread, const ReplicaBatch& batch, Index replica, bool last) {
  Lane& lane = *lanes_[static_cast<std::size_t>(thread)];
  GradientTarget target = gradients_.begin_replica(thread, replica);
  const Index parts = std::min(context_.accumulate, batch.rows);
  const Index first = context_.plan.hosted[static_cast<std::size_t>(context_.comm.rank())].begin;
  for (Index i = 0; i < parts; ++i) {
    LayerDone done;
    if (last && i + 1 == parts) done = [this, thread](Index layer) { layer_done(thread, layer); };
    const Tally tally = run_part(lane, batch, split_evenly(batch.rows, parts, i), target, done);
    tallies_[static_cast<std::size_t>(replica - first)].add(tally);
    target.write = Write::kAdd;
  }
}

Tally GradientStep::run_part(Lane& lane, const ReplicaBatch& batch, Range rows, const GradientTarget& target,
                             const LayerDone& done) {
  const Index columns = context_.model.input().size();
  const ConstMatrix x(batch.features.data() + rows.begin * columns, rows.size(), columns);
  const ConstMatrix targets(batch.targets.data() + rows.begin * context_.target_columns, rows.size(),
                            context_.target_columns);
  const std::span<const Scalar> weights = context_.strategy.weights();
  const ConstMatrix outputs = lane.workspace.forward(weights, x);
  Matrix gradient = lane.workspace.output_gradient();
  Tally tally{.samples = static_cast<double>(rows.size())};
  tally.loss = context_.loss.evaluate(outputs, targets, &gradient);
  tally.correct = count_correct(context_.loss.targets(), outputs, targets);
  // Before backward: the loss leaves with the first bucket.
  Scalar& loss_sum = target.arena[static_cast<std::size_t>(context_.plan.loss_place)];
  loss_sum = (target.write == Write::kAdd ? loss_sum : 0) + static_cast<Scalar>(tally.loss);
  lane.workspace.backward(weights, x, target.arena, target.write, done);
  return tally;
}

void GradientStep::layer_done(Index thread, Index layer) {
  lanes_[static_cast<std::size_t>(thread)]->at_layer.store(layer, std::memory_order_release);
  if (thread == 0) send_ready_buckets();
}

// Thread 0 alone talks to other ranks. Buckets leave in the order of the plan, each once every thread is past
// it.
void GradientStep::send_ready_buckets() {
  Index slowest = kAllDone;
  for (const auto& lane : lanes_) slowest = std::max(slowest, lane->at_layer.load(std::memory_order_acquire));
  const std::vector<Bucket>& buckets = context_.plan.buckets;
  while (buckets_sent_ < buckets.size() && slowest <= buckets[buckets_sent_].layer) {
    if (measure_waiting_ && buckets_sent_ + 1 == buckets.size()) {
      const Stopwatch wait;
      context_.comm.barrier();
      time_.waiting = wait.seconds();
      time_.exchange += *time_.waiting;
    }
    const Bucket& bucket = buckets[buckets_sent_++];
    const PartialGrads& partial = gradients_.combine(bucket.range);
    const Stopwatch sending;
    context_.strategy.bucket_ready(bucket, partial);
    time_.exchange += sending.seconds();
  }
  const Stopwatch progressing;
  context_.strategy.progress();
  time_.exchange += progressing.seconds();
}

std::string GradientStep::find_bad_number(const StepBatch& batch) {
  const Index first = context_.plan.hosted[static_cast<std::size_t>(context_.comm.rank())].begin;
  for (std::size_t i = 0; i < batch.replicas.size(); ++i) {
    if (batch.replicas[i].rows == 0) continue;
    std::string found = check_replica(*lanes_.front(), batch.replicas[i], first + static_cast<Index>(i));
    if (!found.empty()) return found;
  }
  return "";
}

std::string GradientStep::check_replica(Lane& lane, const ReplicaBatch& batch, Index replica) {
  AlignedBuffer<Scalar> arena(context_.plan.gradient_size);
  const Index parts = std::min(context_.accumulate, batch.rows);
  for (Index i = 0; i < parts; ++i) {
    const Tally tally =
        run_part(lane, batch, split_evenly(batch.rows, parts, i), {arena.span(), Write::kReplace}, {});
    if (const std::optional<Index> layer = lane.workspace.first_bad_layer()) {
      return fmt::format("replica {}: {} gives a value that is not finite", replica,
                         context_.model.layers()[static_cast<std::size_t>(*layer)].title);
    }
    const auto rows = static_cast<Scalar>(tally.samples);
    const std::array loss{static_cast<Scalar>(tally.loss)};
    if (!all_finite(loss)) return fmt::format("replica {}: the loss itself is not finite", replica);
    for (const ParamInfo& param : context_.model.layout().params) {
      if (all_within(part(std::span<const Scalar>(arena.span()), param.range), kMostGradient * rows))
        continue;
      return fmt::format("replica {}: the gradient of {} ({}) is not finite or beyond 1e18", replica,
                         param.name, context_.model.layers()[static_cast<std::size_t>(param.layer)].title);
    }
  }
  return "";
}

}  // namespace lockstep
