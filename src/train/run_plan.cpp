#include "lockstep/train/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/math/fixed_tree.h"

namespace lockstep {
namespace {

constexpr Index kScalarBytes = sizeof(Scalar);

Index global_batch(const TrainOptions& train, Index replicas) {
  const Index batch = train.global_batch > 0 ? train.global_batch : train.per_replica_batch * replicas;
  if (batch < replicas) {
    throw ConfigError(
        fmt::format("train.global_batch is {} but there are {} replicas, so some would never see a sample; "
                    "raise train.global_batch to at least {} or lower train.replicas",
                    batch, replicas, replicas));
  }
  return batch;
}

// Steps until `samples` are used: whole epochs, and then steps of the next one.
Index steps_for_samples(const EpochPlan& epoch, Index batch, Index samples) {
  const Index whole = samples / epoch.samples;
  const Index rest = samples % epoch.samples;
  return whole * epoch.steps + (rest + batch - 1) / batch;
}

Index run_steps(const TrainOptions& train, const EpochPlan& epoch, Index batch) {
  if (train.steps > 0) return train.steps;
  if (train.samples > 0) return steps_for_samples(epoch, batch, train.samples);
  return static_cast<Index>(std::ceil(train.epochs * static_cast<double>(epoch.steps) - 1e-9));
}

// Most arenas that one thread holds at a time; see LocalGradients.
Index most_arenas(const Plan& plan, Reduction reduction) {
  if (reduction == Reduction::kNative) return 1;
  Index most = 1;
  for (Index thread = 0; thread < plan.threads; ++thread) {
    const Range mine = plan.thread_replicas(0, thread);
    for (Index next = mine.begin; next < mine.end; ++next) {
      const auto held = static_cast<Index>(complete_nodes(plan.replicas, {mine.begin, next}).size());
      most = std::max(most, held + 1);
    }
  }
  return most;
}

// Rank 0 hosts at least as many replicas as any other.
MemoryPlan plan_memory(const RunPlanRequest& request, const RunPlan& plan) {
  const Index arena = plan.dist.gradient_size * kScalarBytes;
  const Index hosted = plan.dist.hosted.front().size();
  const Index batch = (plan.sampling.global_batch + plan.sampling.replicas - 1) / plan.sampling.replicas;
  const Index micro = (batch + request.train.accumulate - 1) / request.train.accumulate;
  const bool ordered = request.distribute.reduction == Reduction::kOrdered;

  MemoryPlan memory;
  memory.weights = request.model.layout().size * kScalarBytes;
  memory.optimizer = memory.weights * request.optimizer_slots;
  memory.gradients = arena * plan.dist.threads * most_arenas(plan.dist, request.distribute.reduction);
  if (ordered && plan.dist.world > 1) {
    const Index foreign = plan.sampling.replicas - hosted;  // at most: one node for each replica elsewhere
    memory.gradients += arena + arena * foreign / plan.dist.world;
  }
  memory.activations = plan.dist.threads * micro * request.model.activation_bytes();
  const Index held = make_sampler(plan.sampling)->needed(plan.dist.hosted.front());
  const Index sample_bytes = (request.model.input().size() + request.target_columns) * kScalarBytes;
  memory.data = held * request.record_bytes + hosted * batch * sample_bytes * (request.data.prefetch + 1);
  return memory;
}

}  // namespace

Progress RunPlan::before(Index step) const {
  const Index whole = step / epoch.steps;
  const Index within = std::min(step % epoch.steps * sampling.global_batch, epoch.samples);
  return {.steps = step,
          .samples = whole * epoch.samples + within,
          .epochs = static_cast<double>(step) / static_cast<double>(epoch.steps)};
}

RunPlan make_run_plan(const RunPlanRequest& request) {
  const TrainOptions& train = request.train;
  RunPlan plan;
  const Index replicas = train.replicas > 0 ? train.replicas : request.world * train.threads;
  plan.dist = make_plan(request.distribute, request.model.layout(),
                        {.world = request.world, .replicas = replicas, .threads = train.threads});
  plan.sampling = {.rows = request.rows,
                   .replicas = replicas,
                   .global_batch = global_batch(train, replicas),
                   .mode = request.data.mode,
                   .tail = train.tail,
                   .seed = request.seed};
  plan.epoch = plan_epoch(plan.sampling);
  plan.steps = run_steps(train, plan.epoch, plan.sampling.global_batch);
  const Progress end = plan.before(plan.steps);
  plan.samples = end.samples;
  plan.epochs = end.epochs;
  plan.times_each_seen = static_cast<double>(plan.samples) / static_cast<double>(request.rows);

  const Schedule schedule(request.schedule, end, plan.sampling.global_batch);
  plan.lr_start = schedule.lr(plan.before(0));
  plan.lr_peak = schedule.peak_lr();
  plan.lr_end = schedule.lr(plan.before(plan.steps - 1));

  plan.parameters = request.model.layout().count();
  plan.gradient_bytes = request.world > 1 ? plan.dist.gradient_size * kScalarBytes : 0;
  plan.memory = plan_memory(request, plan);
  plan.model_file_bytes = plan.parameters * kScalarBytes;
  plan.checkpoint_bytes = plan.model_file_bytes * (1 + request.optimizer_slots);
  return plan;
}

}  // namespace lockstep
