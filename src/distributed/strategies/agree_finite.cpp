#include "agree_finite.h"

#include <cmath>

#include "lockstep/base/timer.h"
#include "lockstep/math/sample_weights.h"

namespace lockstep {

StepOutcome agree_finite(Communicator& comm, bool good, double loss, double weight) {
  const Stopwatch agreeing;
  double known[] = {good ? 0.0 : 1.0, loss};  // ranks with a bad sum, sum of the losses
  comm.all_reduce_sum(as_buffer(std::span(known)));
  return {.applied = known[0] == 0 && std::isfinite(known[1]),
          .mean_loss = mean_of(known[1], weight),
          .exchange_seconds = agreeing.seconds()};
}

}  // namespace lockstep
