// The time of a step on machines that are not at hand: compute as trainer bench has measured it, the exchange
// as its model predicts (distributed/exchange/exchange_time.h). A pure function.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/distributed/exchange/cluster.h"
#include "lockstep/distributed/exchange/exchange_time.h"
#include "lockstep/distributed/optimizer_memory.h"
#include "lockstep/distributed/options.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/options.h"

namespace lockstep {

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
  TimeCurve message = {};  ///< see Cluster; empty where no two ranks shared a host
  TimeCurve shared = {};   ///< likewise
  double add_bandwidth = 0;

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
};

struct ForecastRequest {
  const Model& model;
  const TrainOptions& train;
  const DistOptions& distribute;
  const BenchFigures& measured;
  const ClusterRequest& cluster;
  OptimizerMemory optimizer = {};
  std::span<const std::unique_ptr<Model>> stages = {};  ///< stages of the model; empty if it is not divided
  std::vector<OptimizerMemory> stage_optimizers = {};   ///< of each of the stages

  Index stage_count() const { return std::max<Index>(1, std::ssize(stages)); }
};

/// Times of one step on the slowest rank, in seconds.
struct Forecast {
  Index ranks = 1;
  Index replicas = 1;
  Index global_batch = 0;
  double compute = 0;   ///< data, forward, backward, optimizer
  double waiting = 0;   ///< waiting for the slowest rank, as much as was measured; idle for other stages
  double exchange = 0;  ///< all of it
  double exposed = 0;   ///< the part of `exchange` that is not hidden behind backward
  double oversubscription = 1;  ///< threads that compute, for each core

  double seconds() const { return compute + waiting + exposed; }
  double samples_per_second() const { return static_cast<double>(global_batch) / seconds(); }
  /// Against the same work without any exchange.
  double efficiency() const { return compute / seconds(); }
  bool exchange_overtakes() const { return exchange > compute; }
};

/// The quantity that stays equal as ranks are added: the batch of each rank (as measured), or the global
/// batch.
enum class Scaling { kWeak, kStrong };

/// Errors: ConfigError for what cannot be run: fewer replicas than workers, algorithms that the nodes refuse;
/// and where a figure is needed that was not measured.
Forecast forecast(const ForecastRequest& request, Scaling scaling);

/// How much of the exchange of the buckets comes after the end of backward, which takes `parts[i]` seconds
/// until bucket i leaves, and is over with the last.
double exposed_seconds(const std::vector<double>& parts, const std::vector<ExchangeSeconds>& buckets);

}  // namespace lockstep
