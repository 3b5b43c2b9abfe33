#include "lockstep/base/catalog.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/train/bench/bench.h"
#include "timing.h"

namespace lockstep {
namespace {

constexpr double kLr = 1e-3;
constexpr double kBudget = 0.3;

std::unique_ptr<Optimizer> momentum() {
  return find_entry(optimizer_catalog(), "optimizer", "sgd").make({.momentum = 0.9});
}

Layout one_tensor(Index weights) {
  Layout layout;
  append(layout, {.name = "0.weight", .shape = {{weights}}, .range = {}});
  return layout;
}

}  // namespace

double UpdateRate::least_bytes(Index ranks) const {
  const auto shared = static_cast<double>(ranks);
  return static_cast<double>(weights * Index{sizeof(Scalar)}) * (shared + 4) / shared;
}

// Gradients of zero stay what they are however often they are added, and cost what others do. Who
// makes them has looked at them where the strategy does not, see FactoredGradients::max_gradient().
UpdateRate measure_update(Communicator& comm, const DistOptions& options, Index ranks_per_node,
                          Index weights) {
  const StrategyEntry& entry = strategy_entry(options.strategy);
  const Layout layout = one_tensor(weights);
  const Plan plan = make_plan(options, layout, {.world = comm.size(), .replicas = comm.size()});
  const std::unique_ptr<Optimizer> optimizer = momentum();
  ThreadTeam team(1);
  const std::unique_ptr<Strategy> made = entry.make({.comm = comm,
                                                     .options = options,
                                                     .plan = plan,
                                                     .layout = layout,
                                                     .optimizer = *optimizer,
                                                     .rules = {},
                                                     .team = team,
                                                     .ranks_per_node = ranks_per_node});
  auto& strategy = *made->synchronous();
  const std::span<Scalar> arena = strategy.gradient_arena(plan.gradient_size);
  const PartialGrads partial{.subtrees = {plan.hosted_by(comm.rank())}, .sums = {arena}};
  const std::vector<Index> samples(static_cast<std::size_t>(comm.size()), 1);
  strategy.start();
  Index step = 0;
  const double seconds = median_seconds(
      comm,
      [&] {
        strategy.begin_step(samples, static_cast<double>(comm.size()));
        for (const Bucket& bucket : plan.buckets) strategy.bucket_ready(bucket, partial);
        strategy.finish_exchange();
        strategy.update({.step = ++step, .weight = static_cast<double>(comm.size()), .lr = kLr});
      },
      kBudget);
  return {.name = entry.name, .weights = weights, .seconds = seconds};
}

UpdateRate measure_plain_update(Communicator& comm, Index weights) {
  const Layout layout = one_tensor(weights);
  const std::unique_ptr<Optimizer> optimizer = momentum();
  AlignedBuffer<Scalar> values(layout.size);
  AlignedBuffer<Scalar> gradient(layout.size);
  AlignedBuffer<Scalar> velocity(layout.size);
  const std::span<Scalar> slot = velocity.span();
  const Scalar scale = 1 / static_cast<Scalar>(comm.size());
  Index step = 0;
  const double seconds = median_seconds(
      comm,
      [&] {
        comm.all_reduce_sum(as_buffer(gradient.span()));
        optimizer->update(
            {.weights = values.span(), .gradient = gradient.span(), .slots = std::span(&slot, 1)},
            {.step = ++step, .lr = kLr, .gradient_scale = scale});
      },
      kBudget);
  return {.name = "MPI_Allreduce, then the step", .weights = weights, .seconds = seconds};
}

}  // namespace lockstep
