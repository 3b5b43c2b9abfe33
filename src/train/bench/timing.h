// A figure of several runs.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"

namespace lockstep {

/// *Collective.* The slowest rank's median over some runs of `work`, in seconds; ranks begin each together.
/// `work` runs twice before, uncounted; the second run determines how many fit into `budget` seconds on rank
/// 0. At least 3 and at most 2001, an odd number.
inline double median_seconds(Communicator& comm, const std::function<void()>& work, double budget = 0.1) {
  work();
  comm.barrier();
  const Stopwatch trial;
  work();
  double once = trial.seconds();
  comm.broadcast(as_buffer(std::span(&once, 1)), 0);
  const Index runs = std::clamp<Index>(static_cast<Index>(budget / std::max(once, 1e-7)), 3, 2001) | 1;
  std::vector<double> seconds;
  for (Index run = 0; run < runs; ++run) {
    comm.barrier();
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  std::ranges::nth_element(seconds, seconds.begin() + runs / 2);
  const double mine = at(seconds, runs / 2);
  return std::ranges::max(gather_numbers<double>(comm, mine));
}

}  // namespace lockstep
