// Asynchronous workers: each computes a gradient from the weights as it pulled them, and servers apply it
// when it arrives, whatever other workers have done in between. Training goes in rounds, between which all
// ranks synchronise.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

// Counts of the servers: gradients, samples and losses that they have taken in, in all and of each worker.

/// Sums over all gradients that the servers have taken in since the run began.
struct Totals {
  Index steps = 0;
  Index samples = 0;
  double weight = 0;   ///< sum over the samples of their weights, see LossSums
  double loss = 0;     ///< sum over the samples
  double correct = 0;  ///< weight of the samples that were predicted correctly, see LossSums
};

/// One worker's gradients: computed, applied, dropped.
struct WorkerRecord {
  Index computed = 0;  ///< gradients that it pushed, as it counted them itself
  Index steps = 0;     ///< gradients applied
  Index samples = 0;   ///< samples in the gradients applied
  Index dropped = 0;   ///< gradients that came too late (backup workers)
  Index dropped_samples = 0;
  Index max_ahead = 0;           ///< gradients more than the slowest worker had pushed, when it was let go
  Index staleness_sum = 0;       ///< over the slices of gradients that were applied
  std::vector<Index> staleness;  ///< how many of them, by staleness; the last of 1,024 counts is "or more"
};

struct WorkersReport {
  Totals totals;
  std::vector<WorkerRecord> workers;

  /// Over the gradients of all workers.
  double mean_staleness() const;
  /// The least staleness that at least this share of them do not exceed.
  Index staleness_percentile(double share) const;
};

/// Permission to compute one gradient.
struct Assignment {
  Index step = 0;     ///< number of the step that it is meant for, from 0
  Totals totals;      ///< up to now
  double waited = 0;  ///< seconds until permission was given
};

/// Sums over a worker's own samples, which it pushes beside its gradient.
struct Contribution {
  Index step = 0;
  Index samples = 0;
  double weight = 0;  ///< sum
  double loss = 0;    ///< sum
  double correct = 0;
  double lr = 0;
  std::span<const double> moments;  ///< sums for the running moments; see ReplicaStates
};

/// Functions that servers call while they serve.
struct ServeHooks {
  std::function<void(std::span<const double>)> take_moments;  ///< takes the sums of each gradient of a step
  std::function<void(Index)> before_step;                     ///< called with the number of the step, from 0
  std::function<bool()> ends_early;  ///< whether to end the round, on the first server
};

class AsynchronousStrategy : public Strategy {
 public:
  AsynchronousStrategy* asynchronous() final { return this; }

  /// *Servers, blocking.* Serves until `until` steps are done in all and every worker has sent its done
  /// message.
  virtual void serve(Index until, const ServeHooks& hooks) = 0;

  /// *Workers, blocking.* Permission for one more gradient; weights() are then those of the servers. Nothing:
  /// the round is over. `ends_early`: it is to end for everybody.
  virtual std::optional<Assignment> next(bool ends_early) = 0;
  /// *Workers.* Pushes the gradient whose buckets are all ready. False if it or the loss is not finite: then
  /// it is not pushed, and the round ends for everybody.
  virtual bool push(const Contribution& contribution) = 0;
  /// *Workers.* After next() gave nothing.
  virtual void send_done() = 0;

  /// *Collective, between rounds.*
  virtual WorkersReport report() = 0;
};

/// Whether the workers are asynchronous with these options.
bool is_asynchronous(const DistOptions& options);

}  // namespace lockstep
