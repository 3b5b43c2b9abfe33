// The plan of an experiment.
#include "experiment.h"
#include "lockstep/distributed/tensor_multipliers.h"

namespace lockstep {

RunPlan Experiment::plan(const Config& other, Index world, const std::vector<Index>& node_sizes) const {
  Config planned = other;
  DistOptions& distribute = planned.distribute;
  const Index own = std::max<Index>(1, std::ssize(stages));
  if (distribute.stages == kAutoStages) distribute.stages = own;
  const bool divided_alike = distribute.stages == own && distribute.cut == config.distribute.cut &&
                             distribute.schedule.chunks == config.distribute.schedule.chunks;
  std::vector<std::unique_ptr<Model>> others;
  if (!divided_alike) others = divided(distribute);
  return make_run_plan(plan_request(planned, divided_alike ? stages : others, world, node_sizes));
}

RunPlanRequest Experiment::plan_request(const Config& other, std::span<const std::unique_ptr<Model>> parts,
                                        Index world, const std::vector<Index>& node_sizes) const {
  std::shared_ptr<const std::vector<Chunk>> streamed;
  if (config.data.memory == MemoryMode::kStream) {
    const std::span<const Chunk> chunks = train->chunks();
    streamed = std::make_shared<const std::vector<Chunk>>(chunks.begin(), chunks.end());
  }
  std::vector<OptimizerMemory> stage_optimizers;
  for (const std::unique_ptr<Model>& stage : parts)
    stage_optimizers.emplace_back(*optimizer, stage->layout());
  Index evaluation_rows = 0;
  Index evaluation_sets = 0;
  for (const RecordSource* source : {validation.get(), test.get()}) {
    if (source == nullptr) continue;
    evaluation_rows += source->info().rows;
    ++evaluation_sets;
  }
  return {.train = other.train,
          .data = other.data,
          .distribute = other.distribute,
          .schedule = other.schedule,
          .model = *model,
          .stages = parts,
          .seed = static_cast<std::uint64_t>(other.run.seed),
          .rows = train->info().rows,
          .record_bytes = train->info().record_bytes,
          .streamed = streamed,
          .target_columns = train->info().target_columns,
          .weighted = train->info().weighted || weighs_classes(Split::kTrain),
          .optimizer = {*optimizer, model->layout()},
          .stage_optimizers = stage_optimizers,
          .evaluation_rows = evaluation_rows,
          .evaluation_sets = evaluation_sets,
          .evaluation_batch = other.eval.batch,
          .evaluation_rankings = metrics->needs().rankings,
          .saves = other.checkpoint.every != "never",
          .keeps_best = keeps_best(other),
          .multipliers = describe_multipliers(*model, other.optimizer),
          .world = world,
          .node_sizes = node_sizes};
}

}  // namespace lockstep
