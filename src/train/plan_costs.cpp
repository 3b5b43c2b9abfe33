#include "plan_costs.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/dist/strategy.h"

namespace lockstep {
namespace {

constexpr Index kScalarBytes = sizeof(Scalar);

// Part by part the most that a rank of these needs.
RankCosts most(std::span<const RankCosts> ranks) {
  RankCosts most;
  for (const RankCosts& rank : ranks) {
    most.weights = std::max(most.weights, rank.weights);
    most.optimizer = std::max(most.optimizer, rank.optimizer);
    most.gradients = std::max(most.gradients, rank.gradients);
    most.sent = std::max(most.sent, rank.sent);
  }
  return most;
}

// Of the weights as a model in bf16 multiplies with them.
Index rounded_bytes(const RunPlanRequest& request) {
  return request.model.precision() == Precision::kBf16 ? request.model.layout().size * Index{sizeof(Bf16)}
                                                       : 0;
}

MemoryPlan memory_of(const RunPlanRequest& request, const RunPlan& plan, const RankCosts& costs) {
  MemoryPlan memory{.weights = costs.weights, .optimizer = costs.optimizer, .gradients = costs.gradients};
  if (request.evaluation_rows == 0) return memory;
  const Index sample_bytes = (request.model.input().size() + request.target_columns) * kScalarBytes;
  const Index blocks = (request.evaluation_rows + request.evaluation_batch - 1) / request.evaluation_batch;
  const Index batch_rows = std::min(request.evaluation_batch, request.evaluation_rows);
  const Index record_bytes = request.record_bytes + request.evaluation_rankings * kScalarBytes;
  memory.evaluation = rounded_bytes(request) +
                      (blocks + plan.dist.world - 1) / plan.dist.world * batch_rows * record_bytes +
                      plan.dist.threads * batch_rows * (request.model.activation_bytes() / 2 + sample_bytes);
  return memory;
}

// The first rank hosts at least as many replicas as any other.
void add_replicas(const RunPlanRequest& request, const RunPlan& plan, bool own_weights, MemoryPlan& memory) {
  const Index hosted = plan.dist.hosted.front().size();
  const Index batch = (plan.sampling.global_batch + plan.sampling.replicas - 1) / plan.sampling.replicas;
  const Index micro = (batch + request.train.accumulate - 1) / request.train.accumulate;
  const bool together = !request.model.meetings(plan.sampling.replicas).empty();
  const Index sample_bytes = (request.model.input().size() + request.target_columns) * kScalarBytes;
  const Index arenas = own_weights ? hosted : 1;
  memory.weights += request.model.state_layout().size * kScalarBytes * (hosted + 1);
  memory.weights += rounded_bytes(request) * arenas;
  memory.activations = (together ? hosted : plan.dist.threads) * micro * request.model.activation_bytes();
  memory.data = make_sampler(plan.sampling)->needed(plan.dist.hosted.front()) * request.record_bytes +
                hosted * batch * sample_bytes * (request.data.prefetch + 1);
}

}  // namespace

void plan_costs(const RunPlanRequest& request, RunPlan& plan) {
  const StrategyEntry& strategy = strategy_entry(request.distribute.strategy);
  const std::vector<RankCosts> ranks =
      strategy.costs({.options = request.distribute,
                      .plan = plan.dist,
                      .sums = local_sums(request.distribute),
                      .interleaved = !request.model.meetings(plan.sampling.replicas).empty(),
                      .slots = request.optimizer_slots,
                      .steps = plan.steps,
                      .ranks_per_node = request.ranks_per_node});
  const auto workers = static_cast<std::size_t>(plan.dist.workers());
  const RankCosts worker = most(std::span(ranks).first(workers));
  const RankCosts server = most(std::span(ranks).subspan(workers));
  plan.gradient_bytes = plan.dist.gradient_size * kScalarBytes;
  plan.sent_bytes = std::llround(worker.sent);
  plan.server_sent_bytes = std::llround(server.sent);
  plan.memory = memory_of(request, plan, worker);
  add_replicas(request, plan, strategy.weights_per_replica, plan.memory);
  if (plan.dist.servers > 0) plan.server_memory = memory_of(request, plan, server);

  plan.model_file_bytes = request.model.stored_layout().count() * kScalarBytes;
  const Index slots = plan.parameters * kScalarBytes * request.optimizer_slots;
  const Index models = strategy.weights_per_replica ? plan.sampling.replicas : 1;
  plan.checkpoint_bytes = models * (plan.model_file_bytes + slots);
}

}  // namespace lockstep
