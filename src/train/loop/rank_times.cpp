#include "lockstep/train/loop/rank_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxLines = 4;
constexpr Index kTellingWindows = 3;  // fewer are mostly first steps, which make kernels and touch memory
constexpr double kWorthALine = 0.01;  // share of the time

std::string describe(const RankTimes& times, std::size_t rank) {
  const RankTime& time = times.ranks[rank];
  return fmt::format(
      "slow: rank {} (host {}), {}: slower than others in {} of {} windows; its data and compute take {:.2f} "
      "times those of the fastest rank and {:.2f} times its own best; waiting for it costs {:.1f} % of the "
      "time",
      rank, time.host, to_string(time.slowness), with_commas(time.slow_windows), with_commas(times.windows),
      time.to_best, time.to_own, 100 * times.cost(time.delay));
}

}  // namespace

std::string to_string(Slowness slowness) {
  switch (slowness) {
    case Slowness::kNone:
      return "";
    case Slowness::kTransient:
      return "transient";
    case Slowness::kChronic:
      return "chronic";
  }
  return "";
}

std::vector<std::size_t> slow_ranks(const RankTimes& times) {
  if (times.windows < kTellingWindows) return {};
  std::vector<std::size_t> slow;
  for (std::size_t rank = 0; rank < times.ranks.size(); ++rank) {
    const RankTime& time = times.ranks[rank];
    const bool costs = times.cost(time.delay) >= kWorthALine;
    if (time.slowness == Slowness::kChronic || (time.slowness == Slowness::kTransient && costs))
      slow.push_back(rank);
  }
  std::ranges::stable_sort(
      slow, [&](std::size_t a, std::size_t b) { return times.ranks[a].delay > times.ranks[b].delay; });
  return slow;
}

std::vector<std::string> describe_slow_ranks(const RankTimes& times) {
  const std::vector<std::size_t> slow = slow_ranks(times);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(slow.size(), kMaxLines); ++i)
    lines.push_back(describe(times, slow[i]));
  if (slow.size() > kMaxLines) lines.push_back(fmt::format("slow: {} more ranks", slow.size() - kMaxLines));
  for (const HostTime& host : times.hosts) {
    const double cost = times.cost(host.delay);
    if (times.hosts.size() < 2 || cost < kWorthALine || lines.empty()) continue;
    lines.push_back(fmt::format("slow: host {} costs {:.1f} % of the node-hours: all wait for its {} rank{}",
                                host.host, 100 * cost, host.ranks, host.ranks == 1 ? "" : "s"));
  }
  return lines;
}

}  // namespace lockstep
