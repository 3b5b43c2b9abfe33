// A step of a model that is divided into S stages. A group of S ranks takes m micro-batches through them. The
// stage with most operations needs T seconds for its part of all m; a micro-batch crosses each of the S - 1
// borders twice. The first micro-batch reaches the last stage, and the last one comes back, over all of them:
//
//   max(T, m x v x crossing) + T x idle / (1 - idle) + (S - 1) x crossing + tied
//
// `idle`: the share by idle_share(), (S - 1) / (v x m + S - 1) with enough micro-batches;
// `crossing`: the two messages of a micro-batch over the border with most bytes; `v`: chunks of the model on
// a rank; `tied`: the messages about weights that the stage shares with others, once a step and with each
// micro-batch. What is above T is waiting. The ranks of a stage then exchange its gradients: on the nodes
// that their placement leaves them, over links that the other stages of the node use at the same time. As
// long as there are several nodes, groups that are spread have a border between two of them, over a link
// that all groups use.
#include <algorithm>

#include "forecast_scene.h"
#include "lockstep/base/errors.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/stage_tasks.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/nn/stages.h"

namespace lockstep {
namespace {

StageGrid grid_of(const ForecastRequest& request, const Cluster& all) {
  return {all.ranks(), request.stage_count(), request.distribute.placement};
}

TimeCurve shared_link(const ForecastRequest& request, Index at_once) {
  return TimeCurve::line(request.cluster.latency, request.cluster.bandwidth / static_cast<double>(at_once));
}

// The ranks that run one of the stages, with their share of the links.
Cluster workers_of_stage(const ForecastRequest& request, const Cluster& all) {
  const StageGrid grid = grid_of(request, all);
  const Index on_node = all.ranks_per_node;
  const Index together = grid.neighbouring_ranks();
  const bool spread = request.distribute.placement == StagePlacement::kSpread;
  if (on_node % together != 0 && together % on_node != 0) {
    throw ConfigError(spread ? "the workers of a stage are on parts of nodes: their times are not predicted"
                             : "the stages of a group are on parts of nodes: their times are not predicted");
  }
  Cluster workers = all;
  workers.ranks_per_node = spread ? std::min(on_node, together) : on_node > together ? on_node / together : 1;
  workers.nodes = grid.groups() / workers.ranks_per_node;
  // Stages that use the link of a node at the same time.
  if (workers.nodes > 1) workers.link = shared_link(request, on_node / workers.ranks_per_node);
  return workers;
}

// Between two stages.
TimeCurve stage_messages(const ForecastRequest& request, const Cluster& all) {
  const StageGrid grid = grid_of(request, all);
  const bool spread = request.distribute.placement == StagePlacement::kSpread;
  const bool over_links = spread ? all.nodes > 1 : grid.stages() > all.ranks_per_node;
  if (over_links && spread) return shared_link(request, std::min(grid.groups(), all.ranks_per_node));
  return over_links ? all.link : all.message;
}

// Seconds of the two messages of a micro-batch over the border with most bytes.
double crossing_seconds(const ForecastRequest& request, const Cluster& all, const Scene& scene) {
  const TimeCurve border = stage_messages(request, all);
  double most = 0;
  for (const std::unique_ptr<Model>& stage : request.stages) {
    for (Index i = 0; i < stage->chunks(); ++i) {
      const Index numbers = crossing_size(stage->whole(), stage->chunk(i).stage().begin) * scene.work.rows;
      most = std::max(most, 2 * border.seconds(static_cast<double>(numbers * Index{sizeof(Scalar)})));
    }
  }
  return most;
}

// Seconds of the messages of a step about weights that a stage shares with others.
double tied_seconds(const ForecastRequest& request, const Cluster& all, Index stage, Index micro_batches) {
  const TiedBytes tied = tied_bytes(request.stages, stage, request.distribute.schedule, micro_batches);
  if (tied.borrowed + tied.lent == 0) return 0;
  const TimeCurve border = stage_messages(request, all);
  return border.seconds(static_cast<double>(tied.borrowed + tied.lent)) +
         static_cast<double>(micro_batches) *
             border.seconds(static_cast<double>(tied.returned + tied.collected));
}

// All stages have this in common.
struct Parallel {
  const ForecastRequest& request;
  Scene scene;
  Cluster all;
  Cluster workers;  // of each stage
  double crossing = 0;
};

double share(Index stage, Index whole) {
  return static_cast<double>(stage) / static_cast<double>(whole);
}

Forecast forecast_stage(const Parallel& parallel, std::size_t stage) {
  const ForecastRequest& request = parallel.request;
  const Scene& scene = parallel.scene;
  const Model& model = *request.stages[stage];
  const ModelExchange exchange =
      exchange_of(request, scene, model, request.stage_optimizers[stage], parallel.workers);
  const double weights = share(model.layout().count(), request.model.layout().count());
  const double flops = share(model.training_flops(), request.model.training_flops());
  const StepSeconds step =
      scaled_step(request, scene, parallel.all.oversubscription, exchange.times.stepped * weights);
  const auto passes = static_cast<double>(scene.passes(request.train));
  const auto others = static_cast<double>(request.stage_count() - 1);
  const double busy = (step.forward + step.backward) * flops;
  const double tasks = passes * static_cast<double>(model.chunks());
  // Replicas that meet at layers fill the pipeline anew for each part of train.accumulate.
  const bool meets = request.model.runs_in_lockstep(scene.replicas);
  const Index fills = meets ? request.train.accumulate : 1;
  const double idle = idle_share(request.stage_count(), scene.passes(request.train) / fills, model.chunks());
  const double through =
      std::max(busy, tasks * parallel.crossing) + busy * idle / (1 - idle) +
      static_cast<double>(fills) * others * parallel.crossing +
      tied_seconds(request, parallel.all, static_cast<Index>(stage), scene.passes(request.train));
  Forecast result{.ranks = parallel.all.ranks(),
                  .replicas = scene.replicas,
                  .global_batch = scene.global_batch,
                  .compute = (stage == 0 ? step.data : 0) + busy + step.optimizer,
                  .waiting = through - busy,
                  .oversubscription = oversubscription_of(request)};
  set_exchange(exchange, model, step.backward * flops / passes, result);
  return result;
}

}  // namespace

Forecast forecast_pipeline(const ForecastRequest& request, Scaling scaling) {
  const Scene scene = make_scene(request, scaling);
  const Cluster all = make_cluster(request);
  const Parallel parallel{.request = request,
                          .scene = scene,
                          .all = all,
                          .workers = workers_of_stage(request, all),
                          .crossing = crossing_seconds(request, all, scene)};
  Forecast slowest = forecast_stage(parallel, 0);
  for (std::size_t i = 1; i < request.stages.size(); ++i) {
    const Forecast forecast = forecast_stage(parallel, i);
    if (forecast.seconds() > slowest.seconds()) slowest = forecast;
  }
  return slowest;
}

}  // namespace lockstep
