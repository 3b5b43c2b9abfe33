// The straggler ledger: how each rank spent its time, and which ranks the others waited for.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// A rank is slow in a window of steps if its data and compute take this many times those of the median rank.
inline constexpr double kSlowFactor = 1.1;

/// kChronic: slow in at least half of the windows; kTransient: in some.
enum class Slowness { kNone, kTransient, kChronic };
std::string to_string(Slowness slowness);

/// Seconds of all steps so far. data, compute, exchange and waiting are together the time of the steps.
struct RankTime {
  std::string host = {};
  double data = 0;      ///< waiting for the loader, or preparing samples
  double compute = 0;   ///< forward, backward, optimizer, and all the rest
  double exchange = 0;  ///< exchange, once all ranks have arrived
  double waiting = 0;   ///< waiting for the rank that arrives last
  double delay = 0;     ///< while this rank was the last: from the arrival of the last but one to its own
  double to_best = 1;   ///< data and compute by those of the fastest rank
  double to_own = 1;    ///< data and compute of a step by those in this rank's own best window
  Index slow_windows = 0;
  Slowness slowness = Slowness::kNone;

  double own() const { return data + compute; }
  double total() const { return own() + exchange + waiting; }
};

/// As RankTime::delay, for the ranks of a host together: while they alone had not arrived.
struct HostTime {
  std::string host;
  Index ranks = 0;
  double delay = 0;
};

struct RankTimes {
  std::vector<RankTime> ranks = {};
  std::vector<HostTime> hosts = {};
  double seconds = 0;  ///< the longest total() of a rank
  Index windows = 0;

  /// The share of all ranks' time that a delay costs, as all wait for it.
  double cost(double delay) const { return seconds > 0 ? delay / seconds : 0; }
};

/// The ranks worth naming, those that cost most first: chronic ones, and transient ones that cost something.
/// None where only few windows are over, which are mostly first steps.
std::vector<std::size_t> slow_ranks(const RankTimes& times);

/// Lines for the log: slow ranks, those that cost most first, and hosts that cost something; none if no rank
/// is slow.
std::vector<std::string> describe_slow_ranks(const RankTimes& times);

}  // namespace lockstep
