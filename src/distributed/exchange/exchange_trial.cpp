#include "lockstep/distributed/exchange/exchange_trial.h"

#include "lockstep/math/fixed_tree.h"

namespace lockstep {
namespace {

// One bucket of so many numbers, between the ranks of `plan`.
Plan one_bucket(const Plan& plan, Index count) {
  Plan small;
  small.world = plan.world;
  small.replicas = plan.replicas;
  small.hosted = plan.hosted;
  small.gradient_size = count;
  small.loss_offset = count;
  small.buckets = {{.range = {0, count}}};
  small.slices.emplace_back();
  for (Index rank = 0; rank < plan.world; ++rank) {
    small.slices.front().push_back(split_evenly(count, plan.world, rank, kAlignment));
  }
  return small;
}

}  // namespace

ExchangeTrial::ExchangeTrial(const AlgorithmContext& context, const AlgorithmEntry& entry, Index count)
    : plan_(one_bucket(context.plan, count)), samples_(static_cast<std::size_t>(plan_.replicas), 1) {
  const Range hosted = plan_.hosted_by(context.comm.rank());
  partial_.subtrees = context.reduction == Reduction::kOrdered ? complete_subtrees(plan_.replicas, hosted)
                                                               : std::vector{hosted};
  reducer_ = entry.make({.comm = context.comm,
                         .plan = plan_,
                         .reduction = context.reduction,
                         .gradient_arenas = std::ssize(partial_.subtrees),
                         .ranks_per_node = context.ranks_per_node,
                         .overlaps = context.overlaps});
  for (std::size_t i = 0; i < partial_.subtrees.size(); ++i) {
    const std::span<Scalar> shared = reducer_->shared_arena();
    partial_.sums.push_back(shared.empty() ? own_.emplace_back(count).span() : shared);
  }
}

void ExchangeTrial::run() {
  reducer_->begin_step(samples_);
  reducer_->bucket_ready(plan_.buckets.front(), partial_);
  reducer_->finish();
}

}  // namespace lockstep
