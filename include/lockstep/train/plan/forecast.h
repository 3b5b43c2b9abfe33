// The time of a step on machines that are not at hand: compute as trainer bench has measured it, and the
// messages that the strategy counts (distributed/exchange/costs.h), each with a latency and a time for each
// byte. A pure function.
#pragma once

#include <vector>

#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/options.h"

namespace lockstep {

/// Seconds for so much of something (bytes, rows), from measured points: along straight lines between them
/// and beyond the last, and the first point's seconds below it.
class TimeCurve {
 public:
  struct Point {
    double amount = 0;
    double seconds = 0;
  };

  /// Takes no time.
  TimeCurve() = default;
  /// Points by ascending amount, at least two. A larger amount that seems to take less time is given the time
  /// of the smaller.
  explicit TimeCurve(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  double seconds(double amount) const;

 private:
  std::vector<Point> points_;
};

/// Seconds.
struct StepSeconds {
  double data = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double waiting = 0;  ///< waiting for the slowest rank
};

/// The work of a rank in a step.
struct RankWork {
  Index replicas = 1;  ///< replicas that it hosts
  Index rows = 1;      ///< rows of a replica that go through the model at once
};

/// The figures that were measured on few ranks.
struct BenchFigures {
  Index ranks = 1;
  Index hosts = 1;
  Index cores = 1;  ///< cores of a host
  Index parameters = 0;
  RankWork work = {};
  Index accumulate = 1;
  Index threads = 1;
  StepSeconds step = {};
  double stepped = 1;      ///< times all weights that each rank's optimizer stepped on
  TimeCurve pass = {};     ///< rows through the model and back
  TimeCurve message = {};  ///< bytes from one rank of a node to another, and as many back at the same time;
                           ///< empty where no two ranks shared a host
  TimeCurve shared = {};  ///< bytes that the ranks of a node add in memory they share, each a slice; likewise
  bool bf16 = false;      ///< in this precision

  /// Threads that computed, for each core; at least 1.
  double oversubscription() const;
};

/// The machines on which steps are predicted.
struct ClusterRequest {
  Index nodes = 1;
  Index ranks_per_node = 1;
  double latency = 0;    ///< seconds of a message of no bytes between two nodes
  double bandwidth = 0;  ///< bytes per second of a node's link, each way
  Index cores = 0;       ///< cores of a node; 0: as many as were measured on

  Index ranks() const { return nodes * ranks_per_node; }
};

struct ForecastRequest {
  const Model& model;
  const TrainOptions& train;
  const DistOptions& distribute;
  const BenchFigures& measured;
  const ClusterRequest& cluster;
  OptimizerMemory optimizer = {};
};

/// Times of one step on the slowest rank, in seconds.
struct Forecast {
  Index ranks = 1;
  Index replicas = 1;
  Index global_batch = 0;
  double compute = 0;           ///< data, forward, backward, optimizer
  double waiting = 0;           ///< waiting for the slowest rank, as much as was measured
  double exchange = 0;          ///< all of it
  double exposed = 0;           ///< the part of `exchange` that is not hidden behind backward
  double oversubscription = 1;  ///< threads that compute, for each core

  double seconds() const { return compute + waiting + exposed; }
  double samples_per_second() const { return static_cast<double>(global_batch) / seconds(); }
  /// Against the same work without any exchange.
  double efficiency() const { return compute / seconds(); }
};

/// The quantity that stays equal as ranks are added: the batch of each rank (as measured), or the global
/// batch.
enum class Scaling { kWeak, kStrong };

/// Errors: ConfigError for what cannot be run: fewer replicas than workers, an algorithm that the nodes
/// refuse; and where a figure is needed that was not measured.
Forecast forecast(const ForecastRequest& request, Scaling scaling);

/// The exchange of a bucket.
struct BucketSeconds {
  double ranks = 0;  ///< time in which ranks copy and add
  double link = 0;   ///< further time, in which they could do something else
};

/// How much of the exchange of the buckets comes after the end of backward, which takes `parts[i]` seconds
/// until bucket i leaves, and is over with the last.
double exposed_seconds(const std::vector<double>& parts, const std::vector<BucketSeconds>& buckets);

}  // namespace lockstep
