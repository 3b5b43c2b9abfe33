// The forecast scales a measured step to another number of ranks. Words: the *figures* are what trainer
// bench measured on few ranks; the *scene* is the wanted job: workers, servers, replicas and the work of each
// rank. With weak scaling each rank keeps the work that was measured; with strong scaling the global batch
// stays and is divided.
//
// Compute scales by the time of a pass through the model: the number of passes of a thread times the measured
// time for their rows (passes()), times the oversubscription, threads for each core, compared to that of the
// measurement. The optimizer scales by the weights that a rank updates. Ranks that divide a layer compute as
// much of it for all samples as each would for its own, if its blocks can be shared out evenly.
//
// The exchange comes from the strategy's time model, bucket by bucket. Its overlap with backward is replayed
// in exposed_seconds(): bucket i leaves after its part of backward, the ranks work on it before they resume
// backward, and the link carries one bucket after the other. The part of the exchange that ends after
// backward is exposed, and so are the messages at layers that ranks divide, where all wait.
#include "lockstep/train/plan/forecast.h"

#include <algorithm>

#include "forecast_scene.h"
#include "lockstep/distributed/divided_layers.h"

namespace lockstep {

double BenchFigures::oversubscription() const {
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
  if (!request.stages.empty()) return forecast_pipeline(request, scaling);
  const Scene scene = make_scene(request, scaling);
  const Cluster cluster = make_cluster(request);
  const ModelExchange exchange = exchange_of(request, scene, request.model, request.optimizer, cluster);
  StepSeconds step = scaled_step(request, scene, cluster.oversubscription, exchange.times.stepped);
  const double load = divided_layer_load(request.model, exchange.plan);
  step.forward *= load;
  step.backward *= load;
  Forecast result{.ranks = cluster.ranks(),
                  .replicas = scene.replicas,
                  .global_batch = scene.global_batch,
                  .compute = step.data + step.forward + step.backward + step.optimizer,
                  .waiting = cluster.ranks() > 1 ? step.waiting : 0,
                  .oversubscription = oversubscription_of(request)};
  const auto passes = static_cast<double>(std::max<Index>(scene.passes(request.train), 1));
  set_exchange(exchange, request.model, step.backward / passes, result);
  return result;
}

}  // namespace lockstep
