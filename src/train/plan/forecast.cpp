// The forecast scales a measured step to another number of ranks. Words: the *figures* are what trainer
// bench measured on few ranks; the *job* is the wanted one: workers, servers, replicas and the work of each
// rank. With weak scaling each rank keeps the work that was measured; with strong scaling the global batch
// stays and is divided.
//
// Compute scales by the time of a pass through the model: the number of passes of a thread times the measured
// time for their rows, times the oversubscription, threads for each core, compared to that of the
// measurement. The optimizer scales by the weights that a rank updates. Ranks that divide a layer compute as
// much of it for all samples as each would for its own, if its blocks can be shared out evenly.
//
// The exchange is that of the messages in the strategy's costs: alpha + beta n for each, inside a node as
// measured, between nodes by the latency and the bandwidth of a link, which the ranks of a node share. Each
// bucket has its share of them. The overlap with backward is replayed in exposed_seconds(): bucket i leaves
// after its part of backward, the ranks work on it before they resume backward, and the link carries one
// bucket after the other. The part of the exchange that ends after backward is exposed, and so are the
// messages at layers that ranks divide, where all wait.
#include "lockstep/train/plan/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/sampler.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

TimeCurve::TimeCurve(std::vector<Point> points) : points_(std::move(points)) {
  assert(points_.size() >= 2);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    points_[i].seconds = std::max(points_[i].seconds, points_[i - 1].seconds);
  }
}

double TimeCurve::seconds(double amount) const {
  if (points_.empty()) return 0;
  if (amount <= points_.front().amount) return points_.front().seconds;
  const auto above = std::find_if(points_.begin() + 1, points_.end() - 1,
                                  [amount](const Point& point) { return point.amount >= amount; });
  const Point& below = *(above - 1);
  const double slope = (above->seconds - below.seconds) / (above->amount - below.amount);
  return below.seconds + slope * (amount - below.amount);
}

namespace {

double threads_per_core(Index threads, Index cores) {
  return std::max(1.0, static_cast<double>(threads) / static_cast<double>(cores));
}

double oversubscription_of(const ForecastRequest& request) {
  const Index cores = request.cluster.cores > 0 ? request.cluster.cores : request.measured.cores;
  return threads_per_core(request.cluster.ranks_per_node * request.train.threads, cores);
}

// The wanted job.
struct Job {
  Index servers = 0;
  Index workers = 1;
  Index replicas = 1;
  Index global_batch = 0;
  RankWork work = {};
  double oversubscription = 1;  // compared to that of the measurement
};

void set_measured_batch(const ForecastRequest& request, Job& job) {
  job.work = request.measured.work;
  job.replicas = job.workers * job.work.replicas;
  job.global_batch = job.replicas * job.work.rows * request.train.accumulate;
}

void set_batch_of_config(const TrainOptions& train, Job& job) {
  job.replicas = train.replicas_of(job.workers);
  job.global_batch = train.global_batch_of(job.replicas);
  check_global_batch(job.global_batch, job.replicas);
  job.work = {.replicas = divide_up(job.replicas, job.workers),
              .rows = divide_up(job.global_batch, job.replicas * train.accumulate)};
}

Job make_job(const ForecastRequest& request, Scaling scaling) {
  const Index ranks = request.cluster.ranks();
  Job job{.servers = count_servers(request.distribute),
          .oversubscription = oversubscription_of(request) / request.measured.oversubscription()};
  job.workers = ranks - job.servers;
  if (job.workers < 1) {
    throw ConfigError(fmt::format("{} of {} ranks are servers: nobody is left to train", job.servers, ranks));
  }
  if (scaling == Scaling::kWeak) {
    set_measured_batch(request, job);
  } else {
    set_batch_of_config(request.train, job);
  }
  return job;
}

// Passes of a thread through the model in a step.
double passes(const RankWork& work, Index accumulate, Index threads) {
  return static_cast<double>(divide_up(work.replicas, threads) * accumulate);
}

// A rank's optimizer steps on `stepped` times all weights.
StepSeconds scaled_step(const ForecastRequest& request, const Job& job, double stepped) {
  const BenchFigures& measured = request.measured;
  const TrainOptions& train = request.train;
  const auto seconds = [&](const RankWork& work, Index accumulate, Index threads) {
    return passes(work, accumulate, threads) * measured.pass.seconds(static_cast<double>(work.rows));
  };
  const double factor = job.oversubscription * seconds(job.work, train.accumulate, train.threads) /
                        seconds(measured.work, measured.accumulate, measured.threads);
  return {.data = measured.step.data * factor,
          .forward = measured.step.forward * factor,
          .backward = measured.step.backward * factor,
          .optimizer = measured.step.optimizer * job.oversubscription * stepped / measured.stepped,
          .waiting = measured.step.waiting * factor};
}

// The share of backward that is over once the gradients from `offset` of the arena on are final, by
// floating-point operations.
double share_of_backward(const Model& model, Index offset) {
  double all = 0;
  double done = 0;
  bool open = true;
  for (auto op = model.ops().rbegin(); op != model.ops().rend(); ++op) {
    const auto flops = static_cast<double>(op->layer->flops());
    all += flops;
    if (!open) continue;
    const Range params = op->params;
    open = params.empty() || params.begin >= offset;
    const Index final = std::max<Index>(params.end - offset, 0);
    done += open ? flops : flops * static_cast<double>(final) / static_cast<double>(params.size());
  }
  return done / std::max(all, 1.0);
}

// The exchange of a step: of the first node and of the last, where servers are.
class StepExchange {
 public:
  StepExchange(const ForecastRequest& request, const Job& job) : request_(request), job_(job) {
    const DistOptions& options = request.distribute;
    const ClusterRequest& cluster = request.cluster;
    const Index ranks = cluster.ranks();
    const bool divides = divides_layers(options, ranks);
    plan_ = make_plan(
        options, request.model.layout(),
        {.world = ranks,
         .servers = job.servers,
         .replicas = job.replicas,
         .threads = request.train.threads,
         .max_rows = job.work.rows,
         .grain = owner_grain(options, request.optimizer),
         .divided = divides ? divide_split_layers(request.model, ranks) : std::vector<DividedTensor>()});
    CostModelInput costs{.options = options,
                         .plan = plan_,
                         .sums = local_sums(options),
                         .optimizer = request.optimizer,
                         .node_sizes = full_nodes(ranks, cluster.ranks_per_node)};
    for (const Index begin : {Index{0}, ranks - cluster.ranks_per_node}) {
      costs.ranks = {begin, begin + cluster.ranks_per_node};
      nodes_.push_back(strategy_entry(options.strategy).costs(costs));
    }
    add_divided_layers();
  }

  const Plan& plan() const { return plan_; }

  double stepped() const {
    double most = 0;
    for (const auto& node : nodes_) {
      for (const RankCosts& rank : node) most = std::max(most, rank.stepped);
    }
    return most;
  }

  // All of it, and what of it is not hidden behind the backward pass of a rank's last replica, which takes so
  // many seconds.
  void add_to(Forecast& forecast, double backward) const {
    Index exchanged = 0;
    for (const Bucket& bucket : plan_.buckets) exchanged += bucket.divided ? 0 : bucket.range.size();
    std::vector<double> parts;
    std::vector<BucketSeconds> buckets;
    double before = 0;
    const BucketSeconds after = seconds(&RankCosts::after, 1);
    forecast.exchange = after.ranks + after.link;
    for (const Bucket& bucket : plan_.buckets) {
      const double done = share_of_backward(request_.model, bucket.range.begin);
      parts.push_back(backward * (done - before));
      before = done;
      const Index numbers = bucket.divided ? 0 : bucket.range.size();
      buckets.push_back(
          seconds(&RankCosts::exchange, static_cast<double>(numbers) / static_cast<double>(exchanged)));
      forecast.exchange += buckets.back().ranks + buckets.back().link;
    }
    forecast.exposed = after.ranks + after.link + exposed_seconds(parts, buckets);
  }

 private:
  // All ranks wait at layers that they divide.
  void add_divided_layers() {
    const Peers all{.all = plan_.world - 1, .near = request_.cluster.ranks_per_node - 1};
    for (const DividedExchange& at_layer : divided_layer_exchanges(request_.model, plan_, 0)) {
      const Traffic traffic = to_each(all, at_layer.messages, static_cast<double>(at_layer.bytes));
      for (auto& node : nodes_) {
        for (RankCosts& rank : node) rank.after = rank.after + traffic;
      }
    }
  }

  // A share of this part of the exchange, on the slowest rank.
  BucketSeconds seconds(Traffic RankCosts::*part, double share) const {
    BucketSeconds slowest;
    for (const auto& node : nodes_) {
      double bytes = 0;
      for (const RankCosts& rank : node) bytes += (rank.*part).far.bytes * share;
      for (const RankCosts& rank : node) {
        const BucketSeconds found = seconds(rank.*part * share, bytes);
        if (found.ranks + found.link > slowest.ranks + slowest.link) slowest = found;
      }
    }
    return slowest;
  }

  // `far_bytes`: over the link of the node.
  BucketSeconds seconds(const Traffic& traffic, double far_bytes) const {
    const BenchFigures& measured = request_.measured;
    const auto& [near, far, meetings, added] = traffic;
    double ranks = near.count > 0 ? near.count * measured.message.seconds(near.bytes / near.count) : 0;
    const double meeting = measured.shared.seconds(0);
    ranks += meetings * meeting + measured.shared.seconds(added) - meeting;
    if (far.count == 0) return {.ranks = job_.oversubscription * ranks};
    return {.ranks = job_.oversubscription * ranks,
            .link = far.count * request_.cluster.latency + far_bytes / request_.cluster.bandwidth};
  }

  const ForecastRequest& request_;
  const Job& job_;
  Plan plan_;
  std::vector<std::vector<RankCosts>> nodes_;
};

void refuse(const ForecastRequest& request) {
  if (request.cluster.ranks_per_node > 1 && request.measured.message.empty()) {
    throw ConfigError(
        "messages inside a node were not measured, since no two ranks of the bench shared one; measure with "
        "mpirun -np 2 or more on one node");
  }
  const DistOptions& options = request.distribute;
  if (!uses_algorithm(options) || options.algorithm == kAutoAlgorithm || request.cluster.ranks() == 1) return;
  const AlgorithmEntry& entry = find_entry(algorithm_catalog(), "algorithm", options.algorithm);
  const std::string refusal =
      entry.refusal({.count = request.cluster.nodes, .largest = request.cluster.ranks_per_node});
  if (!refusal.empty()) throw ConfigError(fmt::format("distribute.algorithm {}: {}", entry.name, refusal));
}

}  // namespace

double BenchFigures::oversubscription() const {
  return threads_per_core(divide_up(ranks, hosts) * threads, cores);
}

double exposed_seconds(const std::vector<double>& parts, const std::vector<BucketSeconds>& buckets) {
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
  refuse(request);
  const Job job = make_job(request, scaling);
  const StepExchange exchange(request, job);
  const StepSeconds step = scaled_step(request, job, exchange.stepped());
  const double load = divided_layer_load(request.model, exchange.plan());
  const Index ranks = request.cluster.ranks();
  Forecast result{.ranks = ranks,
                  .replicas = job.replicas,
                  .global_batch = job.global_batch,
                  .compute = step.data + load * (step.forward + step.backward) + step.optimizer,
                  .waiting = ranks > 1 ? step.waiting : 0,
                  .oversubscription = oversubscription_of(request)};
  exchange.add_to(result,
                  load * step.backward / passes(job.work, request.train.accumulate, request.train.threads));
  return result;
}

}  // namespace lockstep
