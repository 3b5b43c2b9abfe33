#include "step_clock.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr Index kExchangeOnlyEvery = 64;
constexpr Index kFirstExchangeOnly = 24;  // not the first steps, which are slow

}  // namespace

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
