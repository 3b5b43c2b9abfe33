// A *point* is a moment of a step at which no rank goes on before all have arrived. A rank has waited there
// from its own arrival to the last one. The rank that came last has delayed all by the time since the last
// but one came; so have the ranks of its host, by the time since the last rank of another host came.
//
// Arrivals stay on their rank until a window of steps is over, so that a step costs two looks at a clock.
#include "rank_ledger.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <optional>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr Index kWindowSteps = 64;
constexpr std::size_t kWindowPoints = 512;
constexpr std::int64_t kClockEvery =
    30'000'000'000;  // ns; a clock that drifts 10 us in a second is a bad one

constexpr std::size_t kMaxLines = 4;
constexpr double kTellingSeconds = 30;  // fewer are mostly first steps, which make kernels and touch memory
constexpr double kLoadSeconds = 0.1;    // between two readings of the load
constexpr double kWorthALine = 0.01;    // share of the time

std::string describe(const RankTimes& times, std::size_t rank) {
  const RankTime& time = times.ranks[rank];
  return fmt::format(
      "slow: rank {} (host {}), {}: slower than others in {} of {} windows; its data and compute take {:.2f} "
      "times those of the fastest rank and {:.2f} times its own best; waiting for it costs {:.1f} % of the "
      "time",
      rank, time.host, to_string(time.slowness), with_commas(time.slow_windows), with_commas(times.windows),
      time.to_best, time.to_own, 100 * times.cost(time.delay));
}

// Threads that run or are ready to, of all programs: those of the ranks are among them.
std::optional<double> running_threads() {
  std::ifstream in;
  in.rdbuf()->pubsetbuf(nullptr, 0);  // a step takes no memory
  in.open("/proc/loadavg");
  std::string skipped;
  double running = 0;
  if (in >> skipped >> skipped >> skipped >> running) return running;
  return std::nullopt;
}

bool is_busy(const RankTimes& times) {
  return times.load > kSlowFactor * static_cast<double>(times.cores) + 0.5;
}

bool all_slower_than_own_best(const RankTimes& times) {
  const auto works = [](const RankTime& time) { return time.to_own > 1; };
  return std::ranges::any_of(times.ranks, works) &&
         std::ranges::all_of(
             times.ranks, [&](const RankTime& time) { return !works(time) || time.to_own >= kSlowFactor; });
}

}  // namespace

std::vector<bool> working_ranks(const Plan& plan) {
  std::vector<bool> works;
  for (const Range hosted : plan.hosted) works.push_back(!hosted.empty());
  return works;
}

bool ranks_due(Index before, Index steps_done, Index steps) {
  return steps_done == steps || steps_done >= before + before / 10;
}

void TimeSums::add_exchange(const ExchangeTime& time) {
  exchange += time.exchange;
  waiting += time.waiting;
  (time.exchange_only ? alone : beside) += time.exchange - (time.exchange_only ? time.waiting : 0);
  ++(time.exchange_only ? alone_steps : beside_steps);
}

void TimeSums::add(const TimeSums& other) {
  auto sums = std::bit_cast<std::array<double, kColumns>>(*this);
  const auto more = std::bit_cast<std::array<double, kColumns>>(other);
  for (std::size_t i = 0; i < kColumns; ++i) sums[i] += more[i];
  *this = std::bit_cast<TimeSums>(sums);
}

TimeShares TimeSums::shares() const {
  if (total <= 0) return {};
  TimeShares shares{.data = data / total,
                    .compute = compute() / total,
                    .forward = forward / total,
                    .optimizer = optimizer / total,
                    .communication = (exchange - waiting) / total,
                    .waiting = waiting / total,
                    .idle = idle / total};
  if (alone > 0 && beside_steps > 0)
    shares.hidden = std::max(1 - beside / beside_steps / (alone / alone_steps), 0.0);
  return shares;
}

Measured measured_in(Index step) {
  constexpr Index kEvery = 64;
  constexpr Index kFirst = 24;  // not the first steps, which are slow
  return step % kEvery == kFirst ? Measured::kExchangeOnly : Measured::kNothing;
}

RankLedger::RankLedger(Communicator& comm, std::vector<std::string> hosts, std::vector<bool> works)
    : comm_(comm), clock_(comm) {
  hosts.resize(static_cast<std::size_t>(comm.size()));
  for (const std::string& host : hosts) {
    const auto found = std::ranges::find(times_.hosts, host, &HostTime::host);
    const auto number = static_cast<std::size_t>(found - times_.hosts.begin());
    if (found == times_.hosts.end()) times_.hosts.push_back({.host = host, .ranks = 0, .delay = 0});
    ++times_.hosts[number].ranks;
    step_times_.push_back({.host = number, .works = works[step_times_.size()]});
    times_.ranks.push_back({.host = host});
  }
  clock_.measure();
}

void RankLedger::add(const TimeSums& time, std::span<const Arrival> arrivals) {
  sums_.add(time);
  arrivals_.insert(arrivals_.end(), arrivals.begin(), arrivals.end());
  step_nanoseconds_.push_back(static_cast<Index>(1e9 * time.total));
  if (!arrivals.empty()) ++exchanged_steps_;
}

void RankLedger::add_exchange(double seconds, const Arrival& arrival) {
  sums_.exchange += seconds;
  sums_.total += seconds;
  arrivals_.push_back(arrival);
}

// Only after steps that end with an exchange: between local steps no rank is to wait for another.
bool RankLedger::is_due() const {
  return exchanged_steps_ >= kWindowSteps || arrivals_.size() >= kWindowPoints;
}

// All ranks have made the same steps, so `all` has as many numbers of each.
void RankLedger::settle() {
  step_seconds_.clear();
  if (sums_.steps() == 0) return;
  mine_.clear();
  for (const Arrival& arrival : arrivals_) mine_.push_back(clock_.common(arrival.arrived));
  for (const Arrival& arrival : arrivals_) mine_.push_back(clock_.common(arrival.left));
  mine_.insert(mine_.end(), step_nanoseconds_.begin(), step_nanoseconds_.end());
  all_.resize(mine_.size() * times_.ranks.size());
  comm_.all_gather(as_buffer(std::span<const Index>(mine_)), as_buffer(std::span(all_)));
  take_window(waits(all_));
}

double RankLedger::waits(std::span<const Index> all) {
  const std::size_t ranks = times_.ranks.size();
  const std::size_t columns = mine_.size();
  const std::size_t points = arrivals_.size();
  double waited = 0;
  Index last = 0;
  for (std::size_t point = 0; point < points; ++point) {
    last = charge(all, point);
    const Index in_exchange = arrivals_[point].left - arrivals_[point].arrived;
    waited += 1e-9 *
              static_cast<double>(std::clamp(last - mine_[point], Index{0}, std::max(in_exchange, Index{0})));
  }
  for (std::size_t step = 2 * points; step < columns; ++step) {
    Index longest = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, all[rank * columns + step]);
    step_seconds_.push_back(1e-9 * static_cast<double>(longest));
  }
  // All ranks come to this together: these moments are the same everywhere.
  if (points > 0 && last - clock_.measured_at() > kClockEvery) clock_.measure();
  return waited;
}

// Adds what the last rank at a point, and the host of it, have cost: while it alone had not come, and others
// waited there that had not gone on without it. Returns when it arrived.
Index RankLedger::charge(std::span<const Index> all, std::size_t point) {
  const std::size_t columns = mine_.size();
  const auto arrival = [&](std::size_t rank) { return all[rank * columns + point]; };
  const auto left = [&](std::size_t rank) { return all[rank * columns + arrivals_.size() + point]; };
  std::size_t last = 0;
  for (std::size_t rank = 1; rank < times_.ranks.size(); ++rank) {
    if (arrival(rank) > arrival(last)) last = rank;
  }
  // Its time up to the point before is charged there.
  const Index before = point > 0 ? all[last * columns + point - 1] : std::numeric_limits<Index>::min();
  const auto seconds_without = [&](const auto& is_other) {
    Index from = before;
    Index until = std::numeric_limits<Index>::min();
    for (std::size_t rank = 0; rank < times_.ranks.size(); ++rank) {
      if (!is_other(rank)) continue;
      from = std::max(from, arrival(rank));
      until = std::max(until, std::min(left(rank), arrival(last)));
    }
    return until > from ? 1e-9 * static_cast<double>(until - from) : 0;
  };
  const std::size_t host = step_times_[last].host;
  times_.ranks[last].delay += seconds_without([&](std::size_t rank) { return rank != last; });
  times_.hosts[host].delay +=
      seconds_without([&](std::size_t rank) { return step_times_[rank].host != host; });
  return arrival(last);
}

// *Collective.* Clocks of ranks do not agree to the last digit: no more is waiting than the exchange took.
void RankLedger::take_window(double waited) {
  sums_.waiting = std::min(waited, sums_.exchange);
  if (sums_.exchange > 0) sums_.beside *= 1 - sums_.waiting / sums_.exchange;
  std::vector<TimeSums> window(times_.ranks.size());
  comm_.all_gather(as_buffer(std::span<const double>(&sums_.data, TimeSums::kColumns)),
                   as_buffer(std::span(&window.front().data, TimeSums::kColumns * window.size())));
  add_up(window);
  judge();
  if (comm_.rank() == 0) read_load();
  sums_ = {};
  arrivals_.clear();
  step_nanoseconds_.clear();
  exchanged_steps_ = 0;
}

// `window`: the sums of each rank. A stage of a model that has a single bucket makes no steps in which
// nothing hides the exchange: then what is hidden cannot be told.
void RankLedger::add_up(std::span<const TimeSums> window) {
  ++times_.windows;
  const bool alike = std::ranges::all_of(
      window, [&](const TimeSums& sums) { return sums.alone_steps == window.front().alone_steps; });
  for (std::size_t rank = 0; rank < window.size(); ++rank) {
    TimeSums sums = window[rank];
    if (!alike) sums.alone = 0;
    whole_.add(sums);
    recent_.add(sums);
    RankTime& time = times_.ranks[rank];
    time.data += sums.data;
    time.compute += sums.compute();
    time.exchange += sums.exchange - sums.waiting;
    time.waiting += sums.waiting + sums.idle;
    times_.seconds = std::max(times_.seconds, time.total());
    StepTimes& own = step_times_[rank];
    own.steps += sums.steps();
    own.last = own.works && sums.steps() > 0 ? (sums.data + sums.compute()) / sums.steps() : 0;
    if (own.last > 0) own.best = own.best > 0 ? std::min(own.best, own.last) : own.last;
  }
}

void RankLedger::judge() {
  std::vector<double> last_steps;
  for (const StepTimes& own : step_times_) {
    if (own.last != 0) last_steps.push_back(own.last);
  }
  if (last_steps.empty()) return;
  const auto middle = last_steps.begin() + static_cast<std::ptrdiff_t>((last_steps.size() - 1) / 2);
  std::ranges::nth_element(last_steps, middle);
  const auto mean_step = [&](std::size_t rank) { return times_.ranks[rank].own() / step_times_[rank].steps; };
  double fastest = std::numeric_limits<double>::max();
  for (std::size_t rank = 0; rank < step_times_.size(); ++rank) {
    if (step_times_[rank].best > 0) fastest = std::min(fastest, mean_step(rank));
  }
  for (std::size_t rank = 0; rank < step_times_.size(); ++rank) {
    const StepTimes& own = step_times_[rank];
    RankTime& time = times_.ranks[rank];
    if (own.best <= 0) continue;
    if (own.last > kSlowFactor * *middle) ++time.slow_windows;
    time.to_best = mean_step(rank) / fastest;
    time.to_own = mean_step(rank) / own.best;
    time.slowness = time.slow_windows == 0                    ? Slowness::kNone
                    : 2 * time.slow_windows >= times_.windows ? Slowness::kChronic
                                                              : Slowness::kTransient;
  }
}

void RankLedger::read_load() {
  if (loads_ > 0 && since_load_.seconds() < kLoadSeconds) return;
  since_load_.lap();
  times_.cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::optional<double> running = running_threads();
  if (!running) return;
  ++loads_;
  times_.load += (*running - times_.load) / static_cast<double>(loads_);
}

std::string to_string(Slowness slowness) {
  if (slowness == Slowness::kNone) return "";
  return slowness == Slowness::kChronic ? "chronic" : "transient";
}

std::vector<std::size_t> slow_ranks(const RankTimes& times) {
  if (times.seconds < kTellingSeconds || is_busy(times)) return {};
  std::vector<std::size_t> slow;
  for (std::size_t rank = 0; rank < times.ranks.size(); ++rank) {
    const RankTime& time = times.ranks[rank];
    const bool costs = times.cost(time.delay) >= kWorthALine;
    if (time.to_best < kSlowFactor) continue;
    if (time.slowness == Slowness::kChronic || (time.slowness == Slowness::kTransient && costs))
      slow.push_back(rank);
  }
  std::ranges::stable_sort(
      slow, [&](std::size_t a, std::size_t b) { return times.ranks[a].delay > times.ranks[b].delay; });
  return slow;
}

std::vector<std::string> describe_slow_ranks(const RankTimes& times) {
  if (times.seconds >= kTellingSeconds && is_busy(times) && all_slower_than_own_best(times)) {
    return {fmt::format("this machine is busy (load {:.0f} on {}): all ranks are slower than their own best",
                        times.load, plural(times.cores, "core"))};
  }
  const std::vector<std::size_t> slow = slow_ranks(times);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(slow.size(), kMaxLines); ++i)
    lines.push_back(describe(times, slow[i]));
  if (slow.size() > kMaxLines)
    lines.push_back("slow: " + plural(std::ssize(slow) - Index(kMaxLines), "more rank"));
  for (const HostTime& host : times.hosts) {
    const double cost = times.cost(host.delay);
    if (times.hosts.size() < 2 || cost < kWorthALine || lines.empty()) continue;
    lines.push_back(fmt::format("slow: host {} costs {:.1f} % of the node-hours: all wait for its {}",
                                host.host, 100 * cost, plural(host.ranks, "rank")));
  }
  return lines;
}

}  // namespace lockstep
