// The time of training by phase, from a few measured steps to shares over all ranks.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/gradient_step.h"

namespace lockstep {

/// Seconds of one step.
struct StepTime {
  double data = 0;  ///< waiting for the loader, or preparing samples on the main thread
  double forward = 0;
  double idle = 0;  ///< waiting for another stage of the model
  double optimizer = 0;
  double total = 0;  ///< time of the whole step
  ExchangeTime exchange;
};

class StepClock {
 public:
  /// Measurements of a step: now and then, since it takes longer, the exchange without backward.
  static Measured measured(Index step);

  /// One step.
  void add(const StepTime& step);
  /// Seconds between two steps in which ranks exchanged something.
  void add_exchange(double seconds) {
    exchange_ += seconds;
    total_ += seconds;
  }
  /// Seconds of exchanges so far that were spent waiting for other ranks.
  void add_waiting(double seconds) { waiting_ += seconds; }
  /// *Collective.* Shares over all ranks since the last call (or the start).
  TimeShares take_shares(Communicator& comm);

 private:
  double data_ = 0;
  double forward_ = 0;
  double idle_ = 0;
  double optimizer_ = 0;
  double total_ = 0;
  double exchange_ = 0;
  double waiting_ = 0;
  double exchange_only_ = 0;  // exchange time in steps where nothing hides it
  Index exchange_only_steps_ = 0;
  double overlapped_ = 0;  // exchange time in all other steps
  Index overlapped_steps_ = 0;
};

}  // namespace lockstep
