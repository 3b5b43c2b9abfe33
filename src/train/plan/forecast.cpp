// The forecast scales a measured step to another number of ranks. Words: the *calibration* is what trainer
// bench measured on few ranks; the *scene* is the wanted job: workers, servers, replicas and the work of each
// rank. With weak scaling each rank keeps the work that was measured; with strong scaling the global batch
// stays and is divided.
//
// Compute scales by the time of a pass through the model: the number of passes of a thread times the measured
// time for their rows (passes()), times the oversubscription, threads for each core, compared to that of the
// measurement. The optimizer scales by the weights that a rank updates.
//
// The exchange comes from the strategy's time model, bucket by bucket. Its overlap with backward is replayed
// in exposed_seconds(): bucket i leaves after its part of backward, the ranks work on it before they resume
// backward, and the link carries one bucket after the other. The part of the exchange that ends after
// backward is exposed.
#include "lockstep/train/plan/forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/sampler.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/train/plan/refusals.h"

namespace lockstep {
namespace {

double oversubscription_of(Index threads, Index cores) {
  return std::max(1.0, static_cast<double>(threads) / static_cast<double>(cores));
}

// The whole of a request, on so many ranks.
struct Scene {
  Index workers = 1;
  Index servers = 0;
  Index replicas = 1;
  Index global_batch = 0;
  RankWork work = {};
};

Scene measured_batch(const ForecastRequest& request, Scene scene) {
  const Calibration& measured = request.calibration;
  scene.work = measured.work;
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

Scene make_scene(const ForecastRequest& request, Scaling scaling) {
  const Index ranks = request.cluster.nodes * request.cluster.ranks_per_node;
  Scene scene{.servers = count_servers(request.distribute)};
  scene.workers = ranks - scene.servers;
  if (scene.workers < 1) {
    throw ConfigError(
        fmt::format("{} of {} ranks are servers: nobody is left to train", scene.servers, ranks));
  }
  return scaling == Scaling::kWeak ? measured_batch(request, scene) : fixed_batch(request, scene);
}

double oversubscription_of(const ForecastRequest& request) {
  const Index cores = request.cluster.cores > 0 ? request.cluster.cores : request.calibration.cores;
  return oversubscription_of(request.cluster.ranks_per_node * request.train.threads, cores);
}

Cluster make_cluster(const ForecastRequest& forecast) {
  const Calibration& measured = forecast.calibration;
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

// Seconds in which one rank's thread goes through the model for its share of the step.
double passes(const RankWork& work, Index accumulate, Index threads, const TimeCurve& pass) {
  return static_cast<double>(divide_up(work.replicas, threads) * accumulate) *
         pass.seconds(static_cast<double>(work.rows));
}

StepSeconds scaled_step(const ForecastRequest& request, const Scene& scene, double oversubscription,
                        double stepped) {
  const Calibration& measured = request.calibration;
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

double Calibration::oversubscription() const {
  return oversubscription_of(divide_up(ranks, hosts) * threads, cores);
}

double exposed_seconds(const std::vector<double>& parts, const std::vector<ExchangeSeconds>& buckets) {
  double ranks = 0;  // busy until
  double link = 0;
  double backward = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    backward += parts[i];
    ranks += parts[i] + buckets[i].ranks;
    link = std::max(link, ranks) + buckets[i].link;
  }
  return std::max(ranks, link) - backward;
}

Forecast forecast(const ForecastRequest& request, Scaling scaling) {
  const Scene scene = make_scene(request, scaling);
  const DistOptions& options = request.distribute;
  const Cluster cluster = make_cluster(request);
  const Plan plan = make_plan(options, request.model.layout(),
                              {.world = cluster.ranks(),
                               .servers = scene.servers,
                               .replicas = scene.replicas,
                               .threads = request.train.threads,
                               .grain = owner_grain(options, request.optimizer)});
  const CostModelInput costs{.options = options,
                             .plan = plan,
                             .sums = local_sums(options),
                             .optimizer = request.optimizer,
                             .node_sizes = full_nodes(plan.world, cluster.ranks_per_node)};
  const StrategyEntry& strategy = strategy_entry(options.strategy);
  const StepExchange exchange = strategy.time({.costs = costs, .cluster = cluster});

  const StepSeconds step = scaled_step(request, scene, cluster.oversubscription, exchange.stepped);
  const double passes_of_rank =
      static_cast<double>(divide_up(scene.work.replicas, request.train.threads) * request.train.accumulate);
  const std::vector<double> parts =
      parts_of_backward(request.model, plan, step.backward / std::max(passes_of_rank, 1.0));
  Forecast result{.ranks = cluster.ranks(),
                  .global_batch = scene.global_batch,
                  .compute = step.data + step.forward + step.backward + step.optimizer,
                  .waiting = cluster.ranks() > 1 ? step.waiting : 0,
                  .exchange = exchange.after.total(),
                  .exposed = exchange.after.total() + exposed_seconds(parts, exchange.buckets),
                  .oversubscription = oversubscription_of(request)};
  for (const ExchangeSeconds& bucket : exchange.buckets) result.exchange += bucket.total();
  return result;
}

}  // namespace lockstep
