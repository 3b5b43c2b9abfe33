#include "forecast_scene.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/data/sampler.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

double oversubscription_of(Index threads, Index cores) {
  return std::max(1.0, static_cast<double>(threads) / static_cast<double>(cores));
}

namespace {

Scene measured_batch(const ForecastRequest& request, Scene scene) {
  const BenchFigures& measured = request.measured;
  scene.work = measured.work;
  scene.work.replicas *= request.stage_count();  // of a group, so that a rank has as much to do
  scene.replicas = scene.workers * scene.work.replicas;
  scene.global_batch = scene.replicas * scene.work.rows * request.train.accumulate;
  return scene;
}

Scene fixed_batch(const ForecastRequest& request, Scene scene) {
  const TrainOptions& train = request.train;
  scene.replicas = train.replicas_of(scene.workers);
  scene.global_batch = train.global_batch_of(scene.replicas);
  check_global_batch(scene.global_batch, scene.replicas);
  scene.work = {.replicas = divide_up(scene.replicas, scene.workers),
                .rows = divide_up(scene.global_batch, scene.replicas * train.accumulate)};
  return scene;
}

}  // namespace

Scene make_scene(const ForecastRequest& request, Scaling scaling) {
  const Index stages = request.stage_count();
  const Index ranks = request.cluster.nodes * request.cluster.ranks_per_node;
  if (ranks % stages != 0) {
    throw ConfigError(fmt::format("{} ranks are not groups of {} stages", ranks, stages));
  }
  Scene scene{.servers = count_servers(request.distribute)};
  scene.workers = ranks / stages - scene.servers;
  if (scene.workers < 1) {
    throw ConfigError(
        fmt::format("{} of {} ranks are servers: nobody is left to train", scene.servers, ranks));
  }
  return scaling == Scaling::kWeak ? measured_batch(request, scene) : fixed_batch(request, scene);
}

double oversubscription_of(const ForecastRequest& request) {
  const Index cores = request.cluster.cores > 0 ? request.cluster.cores : request.measured.cores;
  return oversubscription_of(request.cluster.ranks_per_node * request.train.threads, cores);
}

Cluster make_cluster(const ForecastRequest& forecast) {
  const BenchFigures& measured = forecast.measured;
  const ClusterRequest& request = forecast.cluster;
  if (request.ranks_per_node > 1 && measured.message.empty()) {
    throw ConfigError(
        "messages inside a node were not measured, since no two ranks of the bench shared one; measure with "
        "mpirun -np 2 or more on one node");
  }
  Cluster cluster{.nodes = request.nodes,
                  .ranks_per_node = request.ranks_per_node,
                  .oversubscription = oversubscription_of(forecast) / measured.oversubscription(),
                  .message = measured.message,
                  .shared = measured.shared,
                  .add_bandwidth = measured.add_bandwidth};
  if (request.nodes > 1) cluster.link = TimeCurve::line(request.latency, request.bandwidth);
  return cluster;
}

namespace {

// Seconds in which one rank's thread goes through the model for its share of the step.
double passes(const RankWork& work, Index accumulate, Index threads, const TimeCurve& pass) {
  return static_cast<double>(divide_up(work.replicas, threads) * accumulate) *
         pass.seconds(static_cast<double>(work.rows));
}

}  // namespace

StepSeconds scaled_step(const ForecastRequest& request, const Scene& scene, double oversubscription,
                        double stepped) {
  const BenchFigures& measured = request.measured;
  const TrainOptions& train = request.train;
  const double was = passes(measured.work, measured.accumulate, measured.threads, measured.pass);
  const double is = passes(scene.work, train.accumulate, train.threads, measured.pass);
  const double factor = oversubscription * is / was;
  return {.data = measured.step.data * factor,
          .forward = measured.step.forward * factor,
          .backward = measured.step.backward * factor,
          .optimizer = measured.step.optimizer * oversubscription * stepped / measured.stepped,
          .waiting = measured.step.waiting * factor};
}

namespace {

// Operations, forward, of what backward has behind it.
class BackwardFlops {
 public:
  explicit BackwardFlops(const Model& model) : op_(model.ops().rbegin()), end_(model.ops().rend()) {}

  /// Operations that are done once the gradients from `offset` of the arena on are final. Each offset is at
  /// or before the last.
  double until(Index offset) {
    for (; op_ != end_; ++op_) {
      const auto whole = static_cast<double>(op_->layer->flops());
      const Range params = op_->params;
      if (!params.empty() && params.begin < offset) {
        const Index left = std::max<Index>(params.end - offset, 0);
        return flops_ + whole * static_cast<double>(left) / static_cast<double>(params.size());
      }
      flops_ += whole;
    }
    return flops_;
  }

 private:
  std::vector<ModelOp>::const_reverse_iterator op_;
  std::vector<ModelOp>::const_reverse_iterator end_;
  double flops_ = 0;
};

// The seconds of backward before each bucket leaves, shared out by floating-point operations. Buckets of
// several replicas leave during the last one's.
std::vector<double> parts_of_backward(const Model& model, const Plan& plan, double seconds) {
  const double all = std::max(BackwardFlops(model).until(0), 1.0);
  BackwardFlops flops(model);
  std::vector<double> parts;
  double before = 0;
  for (const Bucket& bucket : plan.buckets) {
    const double done = flops.until(bucket.range.begin) / all;
    parts.push_back(seconds * (done - before));
    before = done;
  }
  return parts;
}

}  // namespace

ModelExchange exchange_of(const ForecastRequest& request, const Scene& scene, const Model& model,
                          const OptimizerMemory& optimizer, const Cluster& cluster) {
  const DistOptions& options = request.distribute;
  const Index ranks = cluster.ranks();
  const bool divides = request.stages.empty() && divides_layers(options, ranks);
  const Plan plan =
      make_plan(options, model.layout(),
                {.world = ranks,
                 .servers = scene.servers,
                 .replicas = scene.replicas,
                 .threads = request.train.threads,
                 .max_rows = scene.work.rows,
                 .grain = owner_grain(options, optimizer),
                 .divided = divides ? divide_split_layers(model, ranks) : std::vector<DividedTensor>()});
  const CostModelInput costs{.options = options,
                             .plan = plan,
                             .sums = local_sums(options),
                             .optimizer = optimizer,
                             .node_sizes = full_nodes(plan.world, cluster.ranks_per_node)};
  ModelExchange exchange{plan, strategy_entry(options.strategy).time({.costs = costs, .cluster = cluster})};
  // All ranks wait at layers that they divide.
  for (const DividedExchange& at_layer : divided_layer_exchanges(model, plan, 0)) {
    exchange.times.after =
        exchange.times.after + pairwise_time(cluster, static_cast<double>(at_layer.bytes), at_layer.messages);
  }
  return exchange;
}

void set_exchange(const ModelExchange& exchange, const Model& model, double backward, Forecast& forecast) {
  const StepExchange& times = exchange.times;
  const std::vector<double> parts = parts_of_backward(model, exchange.plan, backward);
  forecast.exposed = times.after.total() + exposed_seconds(parts, times.buckets);
  forecast.exchange = times.after.total();
  for (const ExchangeSeconds& bucket : times.buckets) forecast.exchange += bucket.total();
}

}  // namespace lockstep
