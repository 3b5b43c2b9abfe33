// Memory, messages and time of local_sgd.
#include <algorithm>

#include "block_momentum.h"
#include "local_sgd.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

// Weights and, if it is averaged too, the optimizer's state.
Index arenas_of_average(const CostModelInput& question) {
  return 1 + (question.options.average_state ? question.slots : 0);
}

// Before local_from gradients are exchanged in each step, then weights now and then.
std::vector<RankCosts> costs(const CostModelInput& question) {
  const Plan& plan = question.plan;
  const DistOptions& options = question.options;
  const Index together = std::min(plan.local_from, question.steps);
  const Index averages = (question.steps - together) / options.average_every;
  const double exchanges = static_cast<double>(together + averages * arenas_of_average(question)) /
                           static_cast<double>(question.steps);
  return each_rank(question, [&](Index rank) {
    const Index hosted = plan.hosted_by(rank).size();
    const AlgorithmCosts exchange = exchange_costs(question, rank);
    const Index blocks = BlockMomentum::wanted(options) ? 2 : 0;
    return RankCosts{.weights = (hosted + blocks) * question.weights_bytes(),
                     .optimizer = hosted * question.slots * question.weights_bytes(),
                     .gradients = question.gradient_bytes(rank) + exchange.held,
                     .sent = exchanges * static_cast<double>(exchange.sent)};
  });
}

// The exchange of one local step: its share of the average that ends every block. Each replica steps.
StepExchange exchange_time(const TimeModelInput& question) {
  const CostModelInput& costs = question.costs;
  ExchangeSeconds arena;
  for (const ExchangeSeconds& bucket : exchange_times(question)) arena = arena + bucket;
  const double share =
      static_cast<double>(arenas_of_average(costs)) / static_cast<double>(costs.options.average_every);
  Index most = 0;
  for (const Range hosted : costs.plan.hosted) most = std::max(most, hosted.size());
  return {.after = arena * share, .stepped = static_cast<double>(most)};
}

}  // namespace

StrategyEntry local_sgd_entry() {
  return {
      .name = "local_sgd",
      .help =
          "each replica takes its own steps with its own weights and optimizer state; every so many "
          "steps the weights of all replicas are averaged",
      .elsewhere =
          "post-local SGD (PyTorch PostLocalSGDOptimizer), model averaging (CNTK BlockMomentumSGD), FedAvg",
      .choose = "a slow network: messages only every average_every steps, for other numbers than allreduce",
      .promises = {.same_bits_alone = true, .exact_resume = true},
      .sums_to_all = true,
      .weights_per_replica = true,
      .options = {"distribute.average_every", "distribute.average_state", "distribute.local_after",
                  "distribute.block_momentum", "distribute.block_lr"},
      .costs = costs,
      .time = exchange_time,
      .make = [](const StrategyContext& context) { return make_local_sgd(context); }};
}

}  // namespace lockstep
