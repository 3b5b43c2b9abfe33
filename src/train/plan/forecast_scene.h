// The wanted job of a forecast, and what is scaled to it. See forecast.cpp.
#pragma once

#include <vector>

#include "lockstep/distributed/plan.h"
#include "lockstep/train/plan/forecast.h"

namespace lockstep {

double oversubscription_of(Index threads, Index cores);
double oversubscription_of(const ForecastRequest& request);

// The whole of a request, on so many workers that each run the whole model: ranks, or groups of ranks that
// run a stage of it each.
struct Scene {
  Index workers = 1;
  Index servers = 0;
  Index replicas = 1;
  Index global_batch = 0;
  RankWork work = {};

  // Passes of a worker through the model in a step.
  Index passes(const TrainOptions& train) const {
    return divide_up(work.replicas, train.threads) * train.accumulate;
  }
};

Scene make_scene(const ForecastRequest& request, Scaling scaling);
Cluster make_cluster(const ForecastRequest& request);

// A step of a worker that runs the whole model, but for the optimizer, which steps on `stepped` times all
// weights.
StepSeconds scaled_step(const ForecastRequest& request, const Scene& scene, double oversubscription,
                        double stepped);

// The forecast for stages, each on a rank of its group. Requires request.stages.
Forecast forecast_pipeline(const ForecastRequest& request, Scaling scaling);

// The exchange of a step between the ranks that run `model`: the whole of it, or a stage.
struct ModelExchange {
  Plan plan;
  StepExchange times;
};
ModelExchange exchange_of(const ForecastRequest& request, const Scene& scene, const Model& model,
                          const OptimizerMemory& optimizer, const Cluster& cluster);

// Sets all of it, and what of it is not hidden behind the backward pass of the last replica, which takes so
// many seconds.
void set_exchange(const ModelExchange& exchange, const Model& model, double backward, Forecast& forecast);

}  // namespace lockstep
