// Calibration chooses the fastest of several exchange algorithms for each size by trying them. A size is the
// number of scalars of a bucket, rounded up to a power of two between kSmallest and kLargest, so that buckets
// of similar size share one trial. A trial runs the whole exchange on buffers of that size: once without
// counting, then until kRepetitions or its share of the time budget is reached; its time is the median.
//
// Ranks measure different times, and a trial is collective. So rank 0 decides alone, and broadcasts each
// decision: whether to repeat, whether there is time for another size, and which algorithm won. When the
// budget is spent, the remaining sizes take the winner of the size before.
#include "calibration.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "lockstep/base/timer.h"
#include "lockstep/distributed/exchange/exchange_trial.h"

namespace lockstep {
namespace {

constexpr Index kSmallest = 4096;           // numbers
constexpr Index kLargest = Index{1} << 20;  // likewise
constexpr int kRepetitions = 7;             // one more goes first and does not count
constexpr double kBudgetSeconds = 0.15;     // time for all sizes together

// Rank 0's answer, on all ranks.
bool agreed(Communicator& comm, bool answer) {
  Index value = answer ? 1 : 0;
  comm.broadcast(as_buffer(std::span(&value, 1)), 0);
  return value != 0;
}

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
      ExchangeTrial trial(context, *candidates[i], size);
      const double seconds = median_seconds(context.comm, trial, share);
      if (seconds >= shortest) continue;
      shortest = seconds;
      best = static_cast<Index>(i);
    }
    context.comm.broadcast(as_buffer(std::span(&best, 1)), 0);
    fastest.push_back(at(candidates, best));
  }
  return fastest;
}

}  // namespace lockstep
