#include "lockstep/train/plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/data/loading/streamed_records.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/stages.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/staged_model.h"

namespace lockstep {
namespace {

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

// Bytes of the rounded weights of a model in bf16; 0 in fp32.
Index rounded_bytes(const Model& model) {
  if (model.precision() != Precision::kBf16) return 0;
  return (model.layout().size + model.borrowed().size) * Index{sizeof(Bf16)};
}

// Bytes of the weights that a thread keeps in the layouts of its kernels, forward and back. (The back end may
// do with less.)
Index arranged_bytes(const Model& model) {
  Index numbers = 0;
  for (const ModelOp& op : model.ops()) numbers += op.weight_use.arranged.size();
  return 2 * numbers * (model.precision() == Precision::kBf16 ? Index{sizeof(Bf16)} : kScalarBytes);
}

// Bytes of the average of the weights, which each rank gathers, and of the copy of its slice of the weights
// for a checkpoint.
Index average_bytes(const RunPlanRequest& request, const Model& model, const RunPlan& plan) {
  if (!plan.averages()) return 0;
  const bool saves = request.saves || request.keeps_best;
  const Index copied = saves ? split_evenly(model.layout().size, plan.dist.world, 0, kAlignment).size() : 0;
  return (model.stored_layout().size + copied) * kScalarBytes;
}

// The part of the records that a rank with the model, or with this stage of it, keeps.
RecordPart record_part(const RunPlanRequest& request, const Model& model) {
  return needed_part(needs_features(model), needs_targets(model) || request.has_lengths);
}

Index label_columns(const RunPlanRequest& request) {
  return request.target_columns + (request.weighted ? 1 : 0) + (request.has_lengths ? 1 : 0);
}

Index record_bytes_of(const RunPlanRequest& request, const Model& model) {
  return bytes_of_part(record_part(request, model), request.record_bytes, label_columns(request));
}

// Bytes of a prepared sample: features, targets and weight, as far as they are needed.
Index sample_bytes_of(const RunPlanRequest& request, const Model& model, RecordPart part) {
  if (part == RecordPart::kNothing) return 0;
  const Index features = part == RecordPart::kAll ? model.input().size() : 0;
  return (features + label_columns(request)) * kScalarBytes;
}

// Measured: resident memory of a rank that trains a model of two weights, with Open MPI and oneDNN.
constexpr Index kProgramBytes = Index{47} << 20;

MemoryPlan memory_of(const RunPlanRequest& request, const PlannedStage& stage, const RunPlan& plan,
                     const RankCosts& costs) {
  MemoryPlan memory{.weights = costs.weights,
                    .optimizer = costs.optimizer,
                    .gradients = costs.gradients,
                    .program = kProgramBytes};
  if (request.evaluation_rows == 0) return memory;
  const Index sample_bytes = sample_bytes_of(request, stage.model, record_part(request, stage.model));
  const Index blocks = divide_up(request.evaluation_rows, request.evaluation_batch);
  const Index batch_rows = std::min(request.evaluation_batch, request.evaluation_rows);
  const Index score_bytes = request.weighted ? 2 * kScalarBytes : kScalarBytes;
  const Index record_bytes =
      record_bytes_of(request, stage.model) + request.evaluation_rankings * score_bytes;
  // If samples have weights, the first rank gets the scores of all.
  const bool collects = request.weighted && request.evaluation_rankings > 0;
  memory.evaluation = request.evaluation_sets * rounded_bytes(stage.model) +
                      (collects ? request.evaluation_rows * score_bytes : 0) +
                      divide_up(blocks, plan.dist.world) * batch_rows * record_bytes +
                      plan.dist.threads * request.evaluation_sets *
                          (activation_bytes(stage.model, batch_rows, ActivationRetention::kForEvaluation) +
                           batch_rows * sample_bytes);
  return memory;
}

// Memory for the training records of the first rank. Errors: ConfigError if streaming them takes more than is
// allowed.
Index record_memory(const RunPlanRequest& request, const Model& model, const RunPlan& plan) {
  const Range replicas = plan.dist.hosted.front();
  if (!plan.sampling.stream)
    return make_sampler(plan.sampling)->needed(replicas) * record_bytes_of(request, model);
  if (record_part(request, model) == RecordPart::kNothing) return 0;  // else a stream keeps whole records
  DatasetInfo info;
  info.rows = request.rows;
  info.record_bytes = request.record_bytes;
  const Index bytes = stream_bytes(info, plan.sampling, replicas.size());
  if (bytes <= memory_limit_bytes(request.data)) return bytes;
  throw ConfigError(
      "streaming with data.shuffle_buffer = {} for each of {} replicas of a rank takes {}, more than "
      "data.memory_limit = {} GiB: lower data.shuffle_buffer, or raise the limit",
      with_commas(request.data.shuffle_buffer), replicas.size(), human_bytes(bytes),
      request.data.memory_limit);
}

// The first rank hosts at least as many replicas as any other.
void add_replicas(const RunPlanRequest& request, const PlannedStage& stage, const RunPlan& plan,
                  bool own_weights, MemoryPlan& memory) {
  const Model& model = stage.model;
  const Index hosted = plan.dist.hosted.front().size();
  const Index batch = plan.dist.max_rows;
  const Index micro = divide_up(batch, request.train.accumulate);
  const bool together = runs_in_lockstep(model, plan.dist);
  RecordPart kept = record_part(request, model);
  if (plan.sampling.stream && kept == RecordPart::kTargets) kept = RecordPart::kAll;  // a stream has no less
  const Index sample_bytes = sample_bytes_of(request, model, kept);
  const Index arenas = own_weights ? hosted : 1;
  memory.weights += model.state_layout().size * kScalarBytes * (hosted + 2);  // ReplicaStates
  memory.weights += rounded_bytes(model) * arenas + arranged_bytes(model) * plan.dist.threads;
  constexpr auto kRetention = ActivationRetention::kForTraining;
  memory.activations = divided_layer_bytes(model, plan.dist, 0);
  if (stage.alive.empty()) {
    memory.activations +=
        (together ? hosted : plan.dist.threads) * activation_bytes(model, micro, kRetention);
  }
  for (Index i = 0; i < std::ssize(stage.alive); ++i) {
    memory.activations += at(stage.alive, i) * activation_bytes(model.chunk(i), micro, kRetention);
  }
  const Index ahead = steps_ahead(request.data, true, plan.sampling.stream.has_value());  // an upper bound
  memory.data = record_memory(request, model, plan) + hosted * batch * sample_bytes * (ahead + 1);
  if (request.lengths) memory.data += request.rows * kScalarBytes;
}

// Bytes of the pieces in which the first rank of all writes a model whose stages other ranks have.
Index piece_bytes(const Model& stage, Index file_bytes) {
  return stage.is_stage() && stage.chunk(0).stage().begin == 0 ? std::min(file_bytes, kModelPieceBytes) : 0;
}

// Memory for saving: of a copy of what a checkpoint gets, and of the model file.
void add_copies(const RunPlanRequest& request, const Model& model, RunPlan& plan) {
  plan.memory.checkpoint = piece_bytes(model, plan.model_file_bytes);
  if (!request.saves && !request.keeps_best) return;
  // All ranks copy the model file, in whole blocks, and those that own something else their share of that.
  const Index ranks = plan.dist.world * std::max<Index>(1, std::ssize(request.stages));
  const Index owners = plan.dist.servers > 0 ? plan.dist.servers : plan.dist.world;
  const Index state = (plan.checkpoint_bytes - plan.model_file_bytes) / owners;
  const Index file =
      std::min(plan.model_file_bytes, round_up(plan.model_file_bytes / ranks + 1, kCheckedBytes));
  // The first worker holds on to it.
  const Index best = request.keeps_best ? model.stored_layout().count() * kScalarBytes : 0;
  plan.memory.checkpoint += best + file + (plan.dist.servers > 0 ? 0 : state);
  if (plan.dist.servers > 0) plan.server_memory.checkpoint = file + state;
}

// Copies that a rank has of a weight that its stage shares with others and does not own: one for training,
// and one for each set that is evaluated.
Index copies_of_borrowed(const RunPlanRequest& request) {
  return 1 + (request.evaluation_rows > 0 ? request.evaluation_sets : 0);
}

// The plan of the ranks that run a stage. Of `plan` all but the stages is there.
RunPlan plan_stage(const RunPlanRequest& request, const RunPlan& plan, const PlannedStage& stage) {
  RunPlan of_stage = plan;
  of_stage.stages.clear();
  of_stage.dist = plan_ranks(request, stage.model, plan.sampling.replicas);
  of_stage.parameters = stage.model.layout().count();
  plan_costs(request, stage, of_stage);
  const Index copy = stage.model.borrowed().size * Index{sizeof(Scalar)};
  of_stage.memory.weights += copy;
  of_stage.memory.evaluation += (copies_of_borrowed(request) - 1) * copy;
  return of_stage;
}

}  // namespace

Plan plan_ranks(const RunPlanRequest& request, const Model& model, Index replicas) {
  const Index servers = count_servers(request.distribute);
  const Index stages = std::max<Index>(1, std::ssize(request.stages));
  const Index groups = request.world / stages;
  error_if(stages > 1 && groups > replicas,
           "{} groups of {} ranks, one for each stage, but {}: {} of them would have no "
           "work; start at most {} ranks, or raise train.replicas",
           groups, stages, plural(replicas, "replica"), groups - replicas, replicas * stages);
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

void plan_costs(const RunPlanRequest& request, const PlannedStage& stage, RunPlan& plan) {
  const StrategyEntry& strategy = strategy_entry(request.distribute.strategy);
  const std::vector<RankCosts> ranks =
      strategy.costs({.options = request.distribute,
                      .plan = plan.dist,
                      .sums = local_sums(request.distribute),
                      .interleaved = interleaves(stage.model, plan.dist),
                      .optimizer = stage.optimizer,
                      .steps = plan.steps,
                      .node_sizes = request.grid().workers_on_nodes(request.node_sizes, stage.number)});
  const auto workers = static_cast<std::size_t>(plan.dist.workers());
  const RankCosts worker = most(std::span(ranks).first(workers));
  const RankCosts server = most(std::span(ranks).subspan(workers));
  plan.gradient_bytes = plan.dist.gradient_size * kScalarBytes;
  plan.sent_bytes = std::llround(worker.sent) + divided_layer_sent_bytes(stage.model, plan.dist, 0);
  plan.server_sent_bytes = std::llround(server.sent);
  plan.memory = memory_of(request, stage, plan, worker);
  add_replicas(request, stage, plan, strategy.weights_per_replica, plan.memory);
  plan.memory.weights += average_bytes(request, stage.model, plan);
  // Evaluations and the model file take the model as a whole, which ranks gather for them.
  plan.memory.evaluation += plan.dist.divided_elsewhere(0) * kScalarBytes;
  if (plan.dist.servers > 0) {
    plan.server_memory = memory_of(request, stage, plan, server);
    plan.server_memory.weights += average_bytes(request, stage.model, plan);
  }

  plan.model_file_bytes = stage.model.whole().stored_layout().count() * kScalarBytes;
  ModelFacts facts;
  if (!request.positive.empty()) facts[kPositiveFact] = request.positive;
  plan.model_head_bytes =
      std::ssize(model_file_head(stage.model.whole().stored_layout(), stage.model.whole().input(), facts));
  const Index state_bytes = stage.optimizer.saved_bytes(plan.parameters);
  const Index models = strategy.weights_per_replica ? plan.sampling.replicas : 1;
  plan.checkpoint_bytes = models * (plan.model_file_bytes + state_bytes);
  if (plan.averages()) plan.checkpoint_bytes += plan.parameters * kScalarBytes;  // training goes on with them
  add_copies(request, stage.model, plan);
}

StageMemory::StageMemory(const RunPlanRequest& request, const RunPlan& plan,
                         std::function<Stage(Range ops)> make)
    : request_(request),
      plan_(plan),
      make_(std::move(make)),
      ties_(model_ties(request.model)),
      before_(request.model.ops().size() + 1),
      behind_(request.model.ops().size() + 1) {
  const PipelineSchedule& schedule = request.distribute.schedule;
  const Index stages = std::ssize(request.stages);
  for (Index part = 0; part < stages * schedule.chunks; ++part) {
    alive_.push_back(at(chunks_alive(schedule, part % stages, stages, plan.micro_batches), part / stages));
  }
}

const StageMemory::Parts& StageMemory::parts_of(Range ops) {
  std::optional<Parts>& known = ops.begin == 0 ? at(before_, ops.end) : at(behind_, ops.begin);
  if (known) return *known;
  const Stage stage = make_(ops);
  constexpr std::array<Index, 1> kOne{1};
  const MemoryPlan memory =
      plan_stage(request_, plan_,
                 {.model = *stage.model, .optimizer = stage.optimizer, .number = 0, .alive = kOne})
          .memory;
  const Index scratch = tied_gradient_size(*stage.model) * Index{sizeof(Scalar)};
  const Index borrowed = copies_of_borrowed(request_) * stage.model->borrowed().size * Index{sizeof(Scalar)};
  known = {.activations = memory.activations - scratch,
           .data = memory.data,
           .other = memory.total() - memory.activations - memory.data - borrowed};
  return *known;
}

// A tie inside of the part has memory for its gradient in each micro-batch. For one to an earlier part there
// are copies of the weight, and gradients on their way; the owner receives one of these at a time.
Index StageMemory::tied_bytes(Range ops, Index part) const {
  const Index kept = std::min(alive_.front(), std::ssize(request_.stages));
  const Index copies = copies_of_borrowed(request_);
  Index inside = 0;
  Index received = 0;
  Index given = 0;
  std::vector<Index> borrowed;  // owners of the weights that are copied
  for (const ModelTie& tie : ties_) {
    const bool owns = ops.contains(tie.owner);
    if (!ops.contains(tie.op)) {
      if (owns) received = std::max(received, tie.size);
    } else if (owns) {
      inside = std::max(inside, tie.size);
    } else {
      given += kept * tie.size;
      if (std::ranges::find(borrowed, tie.owner) == borrowed.end()) given += copies * tie.size;
      borrowed.push_back(tie.owner);
    }
  }
  return (at(alive_, part) * inside + received + given) * Index{sizeof(Scalar)};
}

Index StageMemory::bytes(Range ops, Index part) {
  const Index end = std::ssize(request_.model.ops());
  const Parts& before = parts_of({0, ops.end});
  const Parts& whole = parts_of({0, end});
  const Parts& behind = ops.begin == 0 ? whole : parts_of({ops.begin, end});
  const Index activations = before.activations + behind.activations - whole.activations;
  // Stages at the ends alone have records, as long as none between takes the input of the model.
  const Index data = ops.begin == 0 ? before.data : ops.end == end ? behind.data : 0;
  return before.other + behind.other - whole.other + data + at(alive_, part) * activations +
         tied_bytes(ops, part);
}

}  // namespace lockstep
