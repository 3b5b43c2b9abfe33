#include "calibration.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/timer.h"
#include "lockstep/math/fixed_tree.h"

namespace lockstep {
namespace {

constexpr Index kSmallest = 4096;           // numbers
constexpr Index kLargest = Index{1} << 20;  // likewise
constexpr int kRepetitions = 7;             // after one that does not count
constexpr double kBudgetSeconds = 0.15;     // of all sizes together

// One bucket of so many numbers, between the ranks of `plan`.
Plan one_bucket(const Plan& plan, Index count) {
  Plan small;
  small.world = plan.world;
  small.replicas = plan.replicas;
  small.hosted = plan.hosted;
  small.gradient_size = count;
  small.loss_place = count;
  small.buckets = {{.range = {0, count}}};
  small.slices.emplace_back();
  for (Index rank = 0; rank < plan.world; ++rank) {
    small.slices.front().push_back(split_evenly(count, plan.world, rank, kAlignment));
  }
  return small;
}

// An exchange that can be repeated, of partial sums as a step would have them.
class Trial {
 public:
  Trial(const AlgorithmContext& context, const AlgorithmEntry& entry, Index count)
      : comm_(context.comm),
        plan_(one_bucket(context.plan, count)),
        samples_(static_cast<std::size_t>(plan_.replicas), 1) {
    const Range hosted = plan_.hosted[static_cast<std::size_t>(comm_.rank())];
    partial_.nodes = context.reduction == Reduction::kOrdered ? complete_nodes(plan_.replicas, hosted)
                                                              : std::vector{hosted};
    reducer_ = entry.make({.comm = comm_,
                           .plan = plan_,
                           .reduction = context.reduction,
                           .gradient_arenas = std::ssize(partial_.nodes),
                           .ranks_per_node = context.ranks_per_node,
                           .overlaps = context.overlaps});
    for (std::size_t i = 0; i < partial_.nodes.size(); ++i) {
      const std::span<Scalar> shared = reducer_->shared_arena();
      partial_.sums.push_back(shared.empty() ? own_.emplace_back(count).span() : shared);
    }
  }

  /// *Collective.* Seconds of one exchange.
  double run() {
    comm_.barrier();
    const Stopwatch watch;
    reducer_->begin_step(samples_);
    reducer_->bucket_ready(plan_.buckets.front(), partial_);
    reducer_->finish();
    return watch.seconds();
  }

 private:
  Communicator& comm_;
  Plan plan_;
  std::vector<Index> samples_;
  std::unique_ptr<Reducer> reducer_;
  PartialGrads partial_;
  std::deque<AlignedBuffer<Scalar>> own_;
};

// Rank 0's answer, on all ranks.
bool agreed(Communicator& comm, bool answer) {
  Index value = answer ? 1 : 0;
  comm.broadcast(as_buffer(std::span(&value, 1)), 0);
  return value != 0;
}

// The median time of an exchange, of as many as fit into so many seconds.
double median_seconds(Communicator& comm, Trial& trial, double budget) {
  const Stopwatch spent;
  trial.run();
  std::vector<double> seconds;
  do {
    seconds.push_back(trial.run());
  } while (agreed(comm, std::ssize(seconds) < kRepetitions && spent.seconds() < budget));
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

}  // namespace

Index calibrated_size(Index count) {
  const auto rounded =
      static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::max<Index>(count, 1))));
  return std::clamp(rounded, kSmallest, kLargest);
}

std::vector<const AlgorithmEntry*> find_fastest(const AlgorithmContext& context,
                                                std::span<const AlgorithmEntry* const> candidates,
                                                std::span<const Index> sizes) {
  const double share = kBudgetSeconds / static_cast<double>(sizes.size() * candidates.size());
  std::vector<const AlgorithmEntry*> fastest;
  const Stopwatch spent;
  for (const Index size : sizes) {
    if (!fastest.empty() && !agreed(context.comm, spent.seconds() < kBudgetSeconds)) {
      fastest.push_back(fastest.back());
      continue;
    }
    Index best = 0;
    double shortest = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Trial trial(context, *candidates[i], size);
      const double seconds = median_seconds(context.comm, trial, share);
      if (seconds >= shortest) continue;
      shortest = seconds;
      best = static_cast<Index>(i);
    }
    context.comm.broadcast(as_buffer(std::span(&best, 1)), 0);
    fastest.push_back(candidates[static_cast<std::size_t>(best)]);
  }
  return fastest;
}

}  // namespace lockstep
