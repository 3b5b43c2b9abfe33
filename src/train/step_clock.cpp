#include "lockstep/train/step_clock.h"

#include <array>

namespace lockstep {

void StepClock::add(double data, double total, const ExchangeTime& exchange) {
  data_ += data;
  total_ += total;
  exchange_ += exchange.exchange;
  if (exchange.waiting) {
    measured_exchange_ += exchange.exchange;
    measured_waiting_ += *exchange.waiting;
  }
}

TimeShares StepClock::take_shares(Communicator& comm) {
  const double waiting = measured_exchange_ > 0 ? exchange_ * measured_waiting_ / measured_exchange_ : 0;
  std::array sums{data_, total_ - data_ - exchange_, exchange_ - waiting, waiting, total_};
  comm.all_reduce_sum(as_buffer(std::span(sums)));
  *this = {};
  if (sums[4] <= 0) return {};
  return {.data = sums[0] / sums[4],
          .compute = sums[1] / sums[4],
          .communication = sums[2] / sums[4],
          .waiting = sums[3] / sums[4]};
}

}  // namespace lockstep
