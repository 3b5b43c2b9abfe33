// Where the time of training goes, from a few measured steps to shares over all ranks.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/train/gradient_step.h"
#include "lockstep/train/metrics.h"

namespace lockstep {

class StepClock {
 public:
  /// Every so many steps the wait for the slowest rank is measured, by a barrier before the last bucket.
  static constexpr Index kMeasureEvery = 16;

  /// Seconds of one step: waiting for data, in all, and in the exchange.
  void add(double data, double total, const ExchangeTime& exchange);
  /// *Collective.* Shares over all ranks since the last call (or the start).
  TimeShares take_shares(Communicator& comm);

 private:
  double data_ = 0;
  double total_ = 0;
  double exchange_ = 0;
  double measured_exchange_ = 0;
  double measured_waiting_ = 0;
};

}  // namespace lockstep
