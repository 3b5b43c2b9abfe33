#include "lockstep/train/step_clock.h"

#include <array>

namespace lockstep {

void StepClock::add(const StepTime& step) {
  data_ += step.data;
  forward_ += step.forward;
  optimizer_ += step.optimizer;
  total_ += step.total;
  exchange_ += step.exchange.exchange;
  if (step.exchange.waiting) {
    measured_exchange_ += step.exchange.exchange;
    measured_waiting_ += *step.exchange.waiting;
  }
}

TimeShares StepClock::take_shares(Communicator& comm) {
  const double waiting = measured_exchange_ > 0 ? exchange_ * measured_waiting_ / measured_exchange_ : 0;
  std::array sums{data_, total_ - data_ - exchange_, exchange_ - waiting, waiting, forward_, optimizer_,
                  total_};
  comm.all_reduce_sum(as_buffer(std::span(sums)));
  *this = {};
  const double total = sums.back();
  if (total <= 0) return {};
  return {.data = sums[0] / total,
          .compute = sums[1] / total,
          .forward = sums[4] / total,
          .optimizer = sums[5] / total,
          .communication = sums[2] / total,
          .waiting = sums[3] / total};
}

}  // namespace lockstep
