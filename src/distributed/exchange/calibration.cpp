// Calibration chooses the fastest of several exchange algorithms for each size by trying them. A size is the
// number of scalars of a bucket, rounded up to a power of two between kSmallest and kLargest, so that buckets
// of similar size share one trial. A trial runs the whole exchange on buffers of that size: once without
// counting, then until kRepetitions or its share of the time budget is reached; its time is the median.
//
// Ranks measure different times, and a trial is collective. So rank 0 decides alone, and broadcasts each
// decision: whether to repeat, whether there is time for another size, and which algorithm won. When the
// budget is spent, the remaining sizes take the winner of the size before.
#include "lockstep/distributed/exchange/calibration.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr Index kSmallest = 4096;           // numbers
constexpr Index kLargest = Index{1} << 20;  // likewise
constexpr int kRepetitions = 7;             // one more goes first and does not count
constexpr double kBudgetSeconds = 0.15;     // time for all sizes together

double timed(Communicator& comm, ExchangeTrial& trial) {
  comm.barrier();
  const Stopwatch watch;
  trial.run();
  return watch.seconds();
}

// The median time of an exchange, of as many as fit into so many seconds.
double median_seconds(Communicator& comm, ExchangeTrial& trial, double budget) {
  const Stopwatch spent;
  timed(comm, trial);
  std::vector<double> seconds;
  do {
    seconds.push_back(timed(comm, trial));
  } while (broadcast_value(comm, std::ssize(seconds) < kRepetitions && spent.seconds() < budget));
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

// One bucket of so many numbers, between the ranks of `plan`.
Plan one_bucket(const Plan& plan, Index count) {
  Plan small = plan.without_buckets();
  small.gradient_size = count;
  small.loss_offset = count;
  small.buckets = {{.range = {0, count}}};
  small.slices.emplace_back();
  for (Index rank = 0; rank < plan.world; ++rank) {
    small.slices.front().push_back(split_evenly(count, plan.world, rank, kAlignment));
  }
  return small;
}

const AlgorithmEntry* find_fastest(const ExchangeRequest& request,
                                   std::span<const AlgorithmEntry* const> candidates, Index size,
                                   double budget) {
  Index best = 0;
  double shortest = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    ExchangeTrial trial(request, *candidates[i], size);
    const double seconds = median_seconds(request.comm, trial, budget);
    if (seconds >= shortest) continue;
    shortest = seconds;
    best = static_cast<Index>(i);
  }
  return at(candidates, broadcast_value(request.comm, best));
}

}  // namespace

ExchangeTrial::ExchangeTrial(const ExchangeRequest& request, const AlgorithmEntry& entry, Index count)
    : plan_(one_bucket(request.plan, count)), samples_(static_cast<std::size_t>(plan_.replicas), 1) {
  const Range hosted = plan_.hosted_by(request.comm.rank());
  partial_.subtrees = contributed_subtrees(request.options.reduction, plan_.replicas, hosted, samples_);
  ExchangeRequest own = request.with_plan(plan_);
  own.gradient_arenas = std::ssize(partial_.subtrees);
  reducer_ = entry.make(own);
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

Index calibrated_size(Index count) {
  const auto rounded =
      static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::max<Index>(count, 1))));
  return std::clamp(rounded, kSmallest, kLargest);
}

AlgorithmChoice calibrate(const ExchangeRequest& request, std::span<const AlgorithmEntry* const> candidates) {
  std::map<Index, const AlgorithmEntry*> fastest;  // by size
  for (const Bucket& bucket : request.plan.buckets) fastest[calibrated_size(bucket.range.size())] = nullptr;
  const double budget = kBudgetSeconds / static_cast<double>(fastest.size() * candidates.size());
  const AlgorithmEntry* last = nullptr;
  const Stopwatch spent;
  for (auto& [size, entry] : fastest) {
    const bool in_time = last == nullptr || broadcast_value(request.comm, spent.seconds() < kBudgetSeconds);
    if (in_time) last = find_fastest(request, candidates, size, budget);
    entry = last;
  }
  AlgorithmChoice choice;
  for (const Bucket& bucket : request.plan.buckets) {
    choice.push_back(fastest[calibrated_size(bucket.range.size())]);
  }
  return choice;
}

}  // namespace lockstep
