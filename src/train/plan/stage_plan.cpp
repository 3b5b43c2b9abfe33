#include "stage_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/stage_tasks.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/stages.h"
#include "plan_costs.h"

namespace lockstep {
namespace {

// The request as if a stage were the whole model.
RunPlanRequest request_of_stage(const RunPlanRequest& request, const PlannedStage& stage) {
  return {.train = request.train,
          .data = request.data,
          .distribute = request.distribute,
          .schedule = request.schedule,
          .model = stage.model,
          .stages = request.stages,
          .rows = request.rows,
          .record_bytes = request.record_bytes,
          .target_columns = request.target_columns,
          .weighted = request.weighted,
          .optimizer = stage.optimizer,
          .evaluation_rows = request.evaluation_rows,
          .evaluation_sets = request.evaluation_sets,
          .evaluation_batch = request.evaluation_batch,
          .evaluation_rankings = request.evaluation_rankings,
          .saves = request.saves,
          .keeps_best = request.keeps_best,
          .world = request.world / std::ssize(request.stages),
          .node_sizes = request.grid().workers_on_nodes(request.node_sizes, stage.number)};
}

// "0 to 3.body.1", and a range for each further chunk.
std::string layers_of(const Model& stage) {
  std::string text;
  for (Index i = 0; i < stage.chunks(); ++i) {
    const Range ops = stage.chunk(i).stage();
    const std::string& first = stage.whole().op(ops.begin).path;
    const std::string& last = stage.whole().op(ops.end - 1).path;
    text += fmt::format("{}{}{}", i == 0 ? "" : ", ", first, first == last ? "" : " to " + last);
  }
  return text;
}

// Scalars of one sample that a stage receives.
Index received_scalars(const Model& stage) {
  Index scalars = 0;
  for (Index i = 0; i < stage.chunks(); ++i) {
    scalars += crossing_size(stage.whole(), stage.chunk(i).stage().begin);
  }
  return scalars;
}

}  // namespace

Plan plan_ranks(const RunPlanRequest& request, const Model& model, Index replicas) {
  const Index servers = count_servers(request.distribute);
  const Index stages = std::max<Index>(1, std::ssize(request.stages));
  const Index groups = request.world / stages;
  if (stages > 1 && groups > replicas) {
    throw ConfigError(fmt::format(
        "{} groups of {} ranks, one for each stage, but {} replica{}: {} of them would have no "
        "work; start at most {} ranks, or raise train.replicas",
        groups, stages, replicas, replicas == 1 ? "" : "s", groups - replicas, replicas * stages));
  }
  const bool divides = stages == 1 && divides_layers(request.distribute, request.world);
  return make_plan(
      request.distribute, model.layout(),
      {.world = groups,
       .servers = servers,
       .replicas = replicas,
       .threads = request.train.threads,
       .max_rows = divide_up(request.train.global_batch_of(replicas), replicas),
       .factored = stages > 1 ? std::vector<FactoredTensor>() : model.factored_tensors(),
       .grain = owner_grain(request.distribute, request.optimizer),
       .divided = divides ? divide_split_layers(model, request.world) : std::vector<DividedTensor>()});
}

Index copies_of_borrowed(const RunPlanRequest& request) {
  return 1 + (request.evaluation_rows > 0 ? request.evaluation_sets : 0);
}

RunPlan plan_stage(const RunPlanRequest& request, const RunPlan& plan, const PlannedStage& stage) {
  RunPlan of_stage = plan;
  of_stage.stages.clear();
  of_stage.dist = plan_ranks(request, stage.model, plan.sampling.replicas);
  of_stage.parameters = stage.model.layout().count();
  plan_costs(request_of_stage(request, stage), of_stage, stage.alive);
  const Index copy = stage.model.borrowed().size * Index{sizeof(Scalar)};
  of_stage.memory.weights += copy;
  of_stage.memory.evaluation += (copies_of_borrowed(request) - 1) * copy;
  return of_stage;
}

void plan_stages(const RunPlanRequest& request, RunPlan& plan) {
  const PipelineSchedule& schedule = request.distribute.schedule;
  const Index stages = std::ssize(request.stages);
  const Index hosted = plan.dist.hosted.front().size();
  plan.chunks = schedule.chunks;
  plan.placement = request.distribute.placement;
  plan.lockstep = request.model.runs_in_lockstep(plan.sampling.replicas);
  plan.micro_batches = plan.lockstep ? hosted : hosted * request.train.accumulate;
  plan.sent_bytes = 0;
  MemoryPlan largest;
  for (std::size_t i = 0; i < request.stages.size(); ++i) {
    const Model& model = *request.stages[i];
    const auto stage = static_cast<Index>(i);
    const std::vector<Index> alive = chunks_alive(schedule, stage, stages, plan.micro_batches);
    RunPlan of_stage = plan_stage(
        request, plan,
        {.model = model, .optimizer = request.stage_optimizers[i], .number = stage, .alive = alive});
    const TiedBytes tied = tied_bytes(request.stages, stage, schedule, plan.micro_batches);
    of_stage.memory.gradients += tied.kept_gradients;
    plan.sent_bytes = std::max(plan.sent_bytes, of_stage.sent_bytes);
    if (of_stage.memory.total() > largest.total()) largest = of_stage.memory;
    plan.stages.push_back({.layers = layers_of(model),
                           .dist = of_stage.dist,
                           .parameters = of_stage.parameters,
                           .flops = model.training_flops(),
                           .received_bytes = received_scalars(model) * Index{sizeof(Scalar)},
                           .alive = micro_batches_alive(schedule, stage, stages, plan.micro_batches),
                           .tied = tied,
                           .memory = of_stage.memory});
  }
  plan.memory = largest;
  plan.enter_stage(0);
}

}  // namespace lockstep
