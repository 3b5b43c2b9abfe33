// A *point* is a moment of a step at which no rank goes on before all have arrived. A rank has waited there
// from its own arrival to the last one. The rank that came last has delayed all by the time since the last
// but one came; so have the ranks of its host, by the time since the last rank of another host came.
//
// Arrivals stay on their rank until a window of steps is over, so that a step costs two looks at a clock.
#include "rank_ledger.h"

#include <algorithm>
#include <array>
#include <limits>

namespace lockstep {
namespace {

constexpr Index kWindowSteps = 64;
constexpr std::size_t kWindowPoints = 512;
constexpr std::int64_t kClockEvery =
    30'000'000'000;  // ns; a clock that drifts 10 us in a second is a bad one

enum WindowSum : std::size_t { kOwnData, kOwnCompute, kOwnExchange, kOwnWaiting, kOwnSteps, kSums };

constexpr Index kExchangeOnlyEvery = 64;
constexpr Index kFirstExchangeOnly = 24;  // not the first steps, which are slow

}  // namespace

std::vector<bool> working_ranks(const Plan& plan) {
  std::vector<bool> works;
  for (const Range hosted : plan.hosted) works.push_back(!hosted.empty());
  return works;
}

bool ranks_due(Index before, Index steps_done, Index steps) {
  return steps_done == steps || steps_done >= before + before / 10;
}

RankLedger::RankLedger(Communicator& comm, std::vector<std::string> hosts, std::vector<bool> works)
    : comm_(comm), clock_(comm), works_(std::move(works)), best_(static_cast<std::size_t>(comm.size())) {
  hosts.resize(static_cast<std::size_t>(comm.size()));
  for (const std::string& host : hosts) {
    const auto found = std::ranges::find(times_.hosts, host, &HostTime::host);
    host_of_.push_back(static_cast<std::size_t>(found - times_.hosts.begin()));
    if (found == times_.hosts.end()) times_.hosts.push_back({.host = host, .ranks = 0, .delay = 0});
    ++times_.hosts[host_of_.back()].ranks;
    times_.ranks.push_back({.host = host});
  }
  all_steps_.resize(times_.ranks.size());
  paces_.resize(times_.ranks.size());
  clock_.measure();
}

void RankLedger::add(const StepTime& time, std::span<const Arrival> arrivals) {
  sum_.data += time.data;
  sum_.idle += time.idle;
  sum_.total += time.total;
  sum_.exchange.exchange += time.exchange.exchange;
  if (!time.exchange.exchange_only) sum_.exchange.waiting += time.exchange.waiting;
  arrivals_.insert(arrivals_.end(), arrivals.begin(), arrivals.end());
  step_nanoseconds_.push_back(static_cast<Index>(1e9 * time.total));
  ++steps_;
  if (!arrivals.empty()) ++exchanged_steps_;
}

void RankLedger::add_exchange(double seconds, const Arrival& arrival) {
  sum_.exchange.exchange += seconds;
  sum_.total += seconds;
  arrivals_.push_back(arrival);
}

// Only after steps that end with an exchange: between local steps no rank is to wait for another.
bool RankLedger::is_due() const {
  return exchanged_steps_ >= kWindowSteps || arrivals_.size() >= kWindowPoints;
}

// All ranks have made the same steps, so `all` has as many numbers of each.
double RankLedger::settle() {
  step_seconds_.clear();
  if (steps_ == 0) return 0;
  mine_.clear();
  for (const Arrival& arrival : arrivals_) mine_.push_back(clock_.common(arrival.arrived));
  mine_.insert(mine_.end(), step_nanoseconds_.begin(), step_nanoseconds_.end());
  all_.resize(mine_.size() * times_.ranks.size());
  comm_.all_gather(as_buffer(std::span<const Index>(mine_)), as_buffer(std::span(all_)));
  const double waited = std::min(waits(all_), sum_.exchange.exchange);
  take_window(waited);
  return waited;
}

void RankLedger::settle_asynchronous() {
  take_window(std::min(sum_.exchange.waiting, sum_.exchange.exchange));
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
  for (std::size_t step = points; step < columns; ++step) {
    Index longest = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, all[rank * columns + step]);
    step_seconds_.push_back(1e-9 * static_cast<double>(longest));
  }
  // All ranks come to this together: these moments are the same everywhere.
  if (points > 0 && last - clock_.measured_at() > kClockEvery) clock_.measure();
  return waited;
}

// Adds what the last rank at a point, and the host of it, have cost. Returns when it arrived.
Index RankLedger::charge(std::span<const Index> all, std::size_t point) {
  const std::size_t columns = mine_.size();
  const auto arrival = [&](std::size_t rank) { return all[rank * columns + point]; };
  std::size_t last = 0;
  for (std::size_t rank = 1; rank < times_.ranks.size(); ++rank) {
    if (arrival(rank) > arrival(last)) last = rank;
  }
  Index other_rank = std::numeric_limits<Index>::min();
  Index other_host = std::numeric_limits<Index>::min();
  for (std::size_t rank = 0; rank < times_.ranks.size(); ++rank) {
    if (rank != last) other_rank = std::max(other_rank, arrival(rank));
    if (host_of_[rank] != host_of_[last]) other_host = std::max(other_host, arrival(rank));
  }
  const auto seconds_since = [&](Index before) { return 1e-9 * static_cast<double>(arrival(last) - before); };
  if (times_.ranks.size() > 1) times_.ranks[last].delay += seconds_since(other_rank);
  if (times_.hosts.size() > 1) times_.hosts[host_of_[last]].delay += seconds_since(other_host);
  return arrival(last);
}

// *Collective.*
void RankLedger::take_window(double waited) {
  std::array<double, kSums> sums{};
  sums[kOwnData] = sum_.data;
  sums[kOwnCompute] = sum_.total - sum_.data - sum_.idle - sum_.exchange.exchange;
  sums[kOwnExchange] = sum_.exchange.exchange - waited;
  sums[kOwnWaiting] = waited + sum_.idle;
  sums[kOwnSteps] = static_cast<double>(steps_);
  std::vector<double> all(kSums * times_.ranks.size());
  comm_.all_gather(as_buffer(std::span<const double>(sums)), as_buffer(std::span(all)));
  add_up(all);
  judge();
  sum_ = {};
  arrivals_.clear();
  step_nanoseconds_.clear();
  exchanged_steps_ = 0;
  steps_ = 0;
}

// `window`: the sums of each rank, one after the other.
void RankLedger::add_up(std::span<const double> window) {
  ++times_.windows;
  for (std::size_t rank = 0; rank < times_.ranks.size(); ++rank) {
    const std::span<const double> sums = window.subspan(rank * kSums, kSums);
    RankTime& time = times_.ranks[rank];
    time.data += sums[kOwnData];
    time.compute += sums[kOwnCompute];
    time.exchange += sums[kOwnExchange];
    time.waiting += sums[kOwnWaiting];
    all_steps_[rank] += sums[kOwnSteps];
    times_.seconds = std::max(times_.seconds, time.total());
    paces_[rank] =
        works_[rank] && sums[kOwnSteps] > 0 ? (sums[kOwnData] + sums[kOwnCompute]) / sums[kOwnSteps] : 0;
    if (paces_[rank] <= 0) continue;
    best_[rank] = best_[rank] > 0 ? std::min(best_[rank], paces_[rank]) : paces_[rank];
  }
}

void RankLedger::judge() {
  std::vector<double> paces = paces_;
  std::erase(paces, 0.0);
  if (paces.empty()) return;
  const auto middle = paces.begin() + static_cast<std::ptrdiff_t>((paces.size() - 1) / 2);
  std::ranges::nth_element(paces, middle);
  const auto whole_pace = [&](std::size_t rank) { return times_.ranks[rank].own() / all_steps_[rank]; };
  double fastest = std::numeric_limits<double>::max();
  for (std::size_t rank = 0; rank < times_.ranks.size(); ++rank) {
    if (best_[rank] > 0) fastest = std::min(fastest, whole_pace(rank));
  }
  for (std::size_t rank = 0; rank < times_.ranks.size(); ++rank) {
    RankTime& time = times_.ranks[rank];
    if (best_[rank] <= 0) continue;
    if (paces_[rank] > kSlowFactor * *middle) ++time.slow_windows;
    time.to_best = whole_pace(rank) / fastest;
    time.to_own = whole_pace(rank) / best_[rank];
    time.slowness = time.slow_windows == 0                    ? Slowness::kNone
                    : 2 * time.slow_windows >= times_.windows ? Slowness::kChronic
                                                              : Slowness::kTransient;
  }
}

Measured StepClock::measured(Index step) {
  return step % kExchangeOnlyEvery == kFirstExchangeOnly ? Measured::kExchangeOnly : Measured::kNothing;
}

void StepClock::add(const StepTime& step) {
  data_ += step.data;
  forward_ += step.forward;
  idle_ += step.idle;
  optimizer_ += step.optimizer;
  total_ += step.total;
  exchange_ += step.exchange.exchange;
  if (step.exchange.exchange_only) {
    exchange_only_ += step.exchange.exchange - step.exchange.waiting;
    ++exchange_only_steps_;
    return;
  }
  overlapped_ += step.exchange.exchange;
  ++overlapped_steps_;
}

TimeShares StepClock::take_shares(Communicator& comm) {
  const double waiting = std::min(waiting_, exchange_);
  const double waits = exchange_ > 0 ? waiting / exchange_ : 0;
  const double overlapped =
      overlapped_steps_ > 0 ? overlapped_ * (1 - waits) / static_cast<double>(overlapped_steps_) : 0;
  const double exchange_only =
      exchange_only_steps_ > 0 ? exchange_only_ / static_cast<double>(exchange_only_steps_) : 0;
  const bool compares = exchange_only_steps_ > 0 && overlapped_steps_ > 0;  // the same on all ranks
  enum Sum : std::size_t {
    kData,
    kCompute,
    kExchange,
    kWaiting,
    kIdle,
    kForward,
    kOptimizer,
    kOverlapped,
    kExchangeOnly,
    kTotal
  };
  std::array<double, kTotal + 1> sums{};
  sums[kData] = data_;
  sums[kCompute] = total_ - data_ - exchange_ - idle_;
  sums[kExchange] = exchange_ - waiting;
  sums[kWaiting] = waiting;
  sums[kIdle] = idle_;
  sums[kForward] = forward_;
  sums[kOptimizer] = optimizer_;
  sums[kOverlapped] = overlapped;
  sums[kExchangeOnly] = exchange_only;
  sums[kTotal] = total_;
  comm.all_reduce_sum(as_buffer(std::span(sums)));
  *this = {};
  const double total = sums[kTotal];
  if (total <= 0) return {};
  std::optional<double> hidden;
  if (compares && sums[kExchangeOnly] > 0)
    hidden = std::max(1 - sums[kOverlapped] / sums[kExchangeOnly], 0.0);
  return {.data = sums[kData] / total,
          .compute = sums[kCompute] / total,
          .forward = sums[kForward] / total,
          .optimizer = sums[kOptimizer] / total,
          .communication = sums[kExchange] / total,
          .waiting = sums[kWaiting] / total,
          .idle = sums[kIdle] / total,
          .hidden = hidden};
}

}  // namespace lockstep
