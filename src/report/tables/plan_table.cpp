#include "lockstep/report/tables/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string number(double value) {
  return fmt::format("{:.5g}", value);
}

// As plural(), of what need not be whole.
std::string counted(double value, const char* noun) {
  return number(value) + " " + noun + (value == 1 ? "" : "s");
}

std::string per_replica(const RunPlan& plan) {
  const Index least = plan.sampling.global_batch / plan.sampling.replicas;
  const bool even = plan.sampling.global_batch % plan.sampling.replicas == 0;
  return even ? with_commas(least) : fmt::format("{} or {}", least, least + 1);
}

std::string steps_per_epoch(const RunPlan& plan) {
  const std::string steps = with_commas(plan.steps_per_epoch);
  if (plan.asynchronous) return steps;
  if (plan.epoch.positions % plan.sampling.global_batch == 0) return steps;
  if (plan.sampling.tail == Tail::kDrop) {
    return fmt::format("{} (rounded down, {} dropped)", steps,
                       with_commas(plan.epoch.positions - plan.epoch.samples));
  }
  return fmt::format("{} (rounded up, last: {})", steps, with_commas(plan.epoch.last_batch));
}

// A cell that does not apply to a plan is empty, and a row of such cells is left out.
const std::vector<ShownColumn<RunPlan>>& rows() {
  static const std::vector<ShownColumn<RunPlan>> kRows{
      {"ranks", [](const RunPlan& p) { return with_commas(p.ranks()); }},
      {"  stages of a group",
       [](const RunPlan& p) { return p.stages.empty() ? "" : with_commas(std::ssize(p.stages)); }},
      {"  of them servers",
       [](const RunPlan& p) { return p.dist.servers > 0 ? with_commas(p.dist.servers) : ""; }},
      {"replicas", [](const RunPlan& p) { return with_commas(p.sampling.replicas); }},
      {"threads per rank", [](const RunPlan& p) { return with_commas(p.dist.threads); }},
      {"data mode", [](const RunPlan& p) { return p.sampling.mode == DataMode::kFull ? "full" : "shard"; }},
      {"training records",
       [](const RunPlan& p) { return p.sampling.stream ? "streamed from files" : "in memory"; }},
      {"rows", [](const RunPlan& p) { return with_commas(p.sampling.rows); }},
      {"global batch",
       [](const RunPlan& p) { return p.steps_by_worker() ? "" : with_commas(p.sampling.global_batch); }},
      {"batch per replica", per_replica},
      {"steps per epoch", steps_per_epoch},
      {"samples per epoch", [](const RunPlan& p) { return with_commas(p.epoch_samples); }},
      {"epochs", [](const RunPlan& p) { return number(p.epochs); }},
      {"steps", [](const RunPlan& p) { return with_commas(p.steps); }},
      {"samples", [](const RunPlan& p) { return with_commas(p.samples); }},
      {"each example seen", [](const RunPlan& p) { return counted(p.times_each_seen, "time"); }},
      {"learning rate: start", [](const RunPlan& p) { return number(p.lr_start); }},
      {"learning rate: peak", [](const RunPlan& p) { return number(p.lr_peak); }},
      {"learning rate: end",
       [](const RunPlan& p) { return (p.plateau.empty() ? "" : "at most ") + number(p.lr_end); }},
      {"strategy", [](const RunPlan& p) { return p.strategy; }},
      {"batch norm",
       [](const RunPlan& p) { return p.batch_norm.empty() ? std::string("none") : p.batch_norm; }},
      {"precision", [](const RunPlan& p) { return p.precision == Precision::kBf16 ? "bf16" : "fp32"; }},
      {"parameters", [](const RunPlan& p) { return with_commas(p.parameters); }},
      {"FLOPs per sample", [](const RunPlan& p) { return with_commas(p.flops); }},
      {"gradient", [](const RunPlan& p) { return human_bytes(p.gradient_bytes); }},
      {"sent per step and rank",
       [](const RunPlan& p) {
         return human_bytes(p.sent_bytes) + (p.average_every > 1 ? " on average" : "");
       }},
      {"sent per step and server",
       [](const RunPlan& p) { return p.dist.servers > 0 ? human_bytes(p.server_sent_bytes) : ""; }},
      {"buckets", [](const RunPlan& p) { return with_commas(std::ssize(p.dist.buckets)); }},
      {"memory per rank", [](const RunPlan& p) { return human_bytes(p.memory.total()); }},
      {"  weights", [](const RunPlan& p) { return human_bytes(p.memory.weights); }},
      {"  optimizer state", [](const RunPlan& p) { return human_bytes(p.memory.optimizer); }},
      {"  gradients, exchange", [](const RunPlan& p) { return human_bytes(p.memory.gradients); }},
      {"  activations", [](const RunPlan& p) { return human_bytes(p.memory.activations); }},
      {"  training data", [](const RunPlan& p) { return human_bytes(p.memory.data); }},
      {"  evaluation", [](const RunPlan& p) { return human_bytes(p.memory.evaluation); }},
      {"  copy for checkpoints", [](const RunPlan& p) { return human_bytes(p.memory.checkpoint); }},
      {"  program and MPI", [](const RunPlan& p) { return human_bytes(p.memory.program); }},
      {"memory per server",
       [](const RunPlan& p) { return p.dist.servers > 0 ? human_bytes(p.server_memory.total()) : ""; }},
      {"  optimizer state",
       [](const RunPlan& p) { return p.dist.servers > 0 ? human_bytes(p.server_memory.optimizer) : ""; }},
      {"model file", [](const RunPlan& p) { return human_bytes(p.model_file_bytes + p.model_head_bytes); }},
      {"checkpoint", [](const RunPlan& p) { return human_bytes(p.checkpoint_bytes); }},
  };
  return kRows;
}

// The meaning of a step with asynchronous workers.
std::string asynchronous_sentence(const RunPlan& plan) {
  const Index workers = plan.dist.workers();
  if (plan.steps_by_worker()) {
    const std::string bound =
        plan.max_ahead ? fmt::format(", no worker more than {} ahead of the slowest", *plan.max_ahead) : "";
    return fmt::format(
        "Each step is one worker's gradient of {}, applied as it arrives{}: {} with {} "
        "each in an epoch. Workers may end in the middle of one: then more samples are used than stated, by "
        "less than a batch for each worker.{}",
        plural(plan.step_batch, "sample"), bound, plural(workers, "worker"), with_commas(plan.epoch.steps),
        workers == 1
            ? ""
            : " Synchronous workers make one step where these make one each: at the same train.lr these "
              "go that many times as far, so divide it by their number.");
  }
  return fmt::format(
      "Each step is one update of the weights with the first {} of {} workers' gradients, {} of {}; "
      "what comes later is dropped.",
      workers - plan.backup_workers, workers, with_commas(plan.step_batch),
      plural(plan.sampling.global_batch, "sample"));
}

std::string divisor_of(const RunPlan& plan, Index batch) {
  const char* const counted = plan.of_positions ? "their positions that count" : "these samples";
  if (plan.weighted) return fmt::format("the sum of the weights of {}", counted);
  return plan.of_positions ? fmt::format("the number of {}", counted) : with_commas(batch);
}

// The meaning of a step: synchronous, asynchronous or local.
std::string update_sentence(const RunPlan& plan) {
  if (plan.asynchronous) return asynchronous_sentence(plan);
  const Index batch = std::min(plan.sampling.global_batch, plan.epoch.samples);
  const Index replicas = plan.sampling.replicas;
  const std::string together = fmt::format(
      "is one update of the weights with the sum of the gradients of {} over {}, divided "
      "by {}",
      plural(batch, "sample"), plural(replicas, "replica"), divisor_of(plan, batch));
  if (plan.average_every == 0 || plan.dist.local_from >= plan.steps)
    return fmt::format("Each step {}.", together);
  const std::string alone = fmt::format(
      "is an update that each of the {} makes to weights of its own, with the {}mean gradient of "
      "its own samples ({} in all); after every {} of them the weights of all replicas are averaged",
      plural(replicas, "replica"), plan.weighted ? "weighted " : "", plural(batch, "sample"),
      with_commas(plan.average_every));
  if (plan.dist.local_from == 0) return fmt::format("Each step {}.", alone);
  return fmt::format("Each of the first {} {}.\nEach later step {}.", plural(plan.dist.local_from, "step"),
                     together, alone);
}

std::string epoch_sentence(const RunPlan& plan) {
  const std::string update = update_sentence(plan);
  const std::string rows = plural(plan.sampling.rows, "row");
  const Index dropped = plan.epoch.positions - plan.epoch.samples;
  const std::string but =
      dropped == 0 ? "" : fmt::format(", but for the {} dropped at its end", with_commas(dropped));
  if (plan.sampling.starts > 0) {
    return fmt::format(
        "{}\nAn epoch is {} that begin anywhere, over all replicas: as many tokens as the text has, "
        "of which some are seen several times and some not at all.",
        update, plural(plan.epoch.samples, "window"));
  }
  if (plan.sampling.mode == DataMode::kShard) {
    return fmt::format(
        "{}\nAn epoch is one pass over the {} by all replicas together: each example is {} once{}{}.", update,
        rows, plan.backup_workers > 0 ? "drawn" : "seen", plan.asynchronous ? " if all are equally fast" : "",
        but);
  }
  return fmt::format("{}\nAn epoch is one pass over the {} by every one of the {}: {}, each example {}{}.",
                     update, rows, plural(plan.sampling.replicas, "replica"),
                     plural(plan.epoch.samples, "sample"), plural(plan.sampling.replicas, "time"), but);
}

std::string tail_sentence(const RunPlan& plan) {
  if (plan.single_values == 0) return "";
  return fmt::format(
      "\nThe last step of each epoch gives {} of {} a single value to normalise in batch norm; it "
      "moves no running moments by itself. train.tail = \"drop\" leaves that step out.",
      plan.single_values, plural(plan.sampling.replicas, "replica"));
}

std::string split_sentence(const RunPlan& plan) {
  if (plan.split_layers == 0) return "";
  const std::string layers = plural(plan.split_layers, "layer") + " with split=rows";
  if (plan.dist.divided.empty()) {
    return plan.ranks() == 1 ? ""
                             : fmt::format(
                                   "\nEach rank computes the {} by itself: distribute.strategy = "
                                   "\"zero1\" would divide the weights among the ranks.",
                                   layers);
  }
  return fmt::format("\nThe ranks divide the weights of the {}: of {} the first rank has {}.", layers,
                     with_commas(plan.dist.divided_size()),
                     with_commas(plan.dist.divided_size() - plan.dist.divided_elsewhere(0)));
}

std::string end_sentence(const RunPlan& plan) {
  if (plan.early_stopping.empty()) return "";
  return fmt::format("\nThe run ends early {}; its steps, samples and epochs are at most those above.",
                     plan.early_stopping);
}

std::string average_sentence(const RunPlan& plan) {
  if (!plan.averages()) return "";
  return fmt::format("\nEvaluated and kept is the weights' {}, taken {}.", plan.describe_average(),
                     plan.ema > 0 ? "after each step" : "at the end of each epoch and of the run");
}

std::string rate_sentences(const RunPlan& plan) {
  std::string text;
  if (!plan.plateau.empty()) text += fmt::format("\nThe learning rate {}.", plan.plateau);
  for (const std::string& line : plan.multipliers) text += fmt::format("\n{}.", line);
  return text;
}

std::string sentence(const RunPlan& plan) {
  return epoch_sentence(plan) + tail_sentence(plan) + split_sentence(plan) + average_sentence(plan) +
         end_sentence(plan) + rate_sentences(plan);
}

// The formula, or where it does not hold the reason.
std::string describe_formula(const RunPlan& plan) {
  if (plan.chunks == 1) return "by (S - 1) / (m + S - 1)";
  if (plan.micro_batches < std::ssize(plan.stages)) return "as there are fewer micro-batches than stages";
  return fmt::format("by (S - 1) / (v m + S - 1) with v = {} of the model on each rank",
                     plural(plan.chunks, "chunk"));
}

std::string describe_idle(const RunPlan& plan) {
  const Index stages = std::ssize(plan.stages);
  const double share = plan.idle_share(plan.micro_batches);
  std::string text =
      fmt::format("A group takes {} through {}: each is idle for {:.0f} % of forward and backward, {}.",
                  plural(plan.micro_batches, "micro-batch"), plural(stages, "stage"), 100 * share,
                  describe_formula(plan));
  if (plan.lockstep) {
    return text +
           " At a batch norm over several replicas a stage waits until all of them are there, so it sends "
           "the first one on later, and the others are idle for longer.";
  }
  constexpr double kLittle = 0.1;
  if (share <= kLittle) return text;
  // 1 / (1 + 2 m / (S - 1)) is about the half.
  const Index more = std::max(stages, 2 * plan.micro_batches + stages - 1);
  return text + fmt::format(" {} replicas for each group, or train.accumulate, would make it {:.0f} %.", more,
                            100 * plan.idle_share(more));
}

// Says which ranks are a group.
std::string describe_groups(const RunPlan& plan) {
  const StageGrid grid = plan.grid();
  if (grid.groups() == 1) return "";
  std::string first;
  for (Index rank = 0; rank < plan.ranks(); ++rank) {
    if (grid.group_of(rank) == 0) first += fmt::format("{}{}", first.empty() ? "" : ", ", rank);
  }
  return fmt::format(
      "\nThere are {} groups, whose ranks are {} (distribute.placement): the first one is ranks {}.",
      grid.groups(), plan.placement == StagePlacement::kSpread ? "spread" : "neighbours", first);
}

std::string describe_balance(const RunPlan& plan) {
  const auto most = static_cast<double>(std::ranges::max_element(plan.stages, {}, &StagePlan::flops)->flops);
  const double mean = static_cast<double>(plan.flops) / static_cast<double>(plan.stages.size());
  constexpr double kUneven = 1.25;
  if (most <= kUneven * mean) return "";
  return fmt::format(
      "\nThe largest stage has {:.1f} times the operations of the average: the others wait for it; "
      "divide its layers, or use fewer stages.",
      most / mean);
}

// The messages about weights that layers of different stages share.
std::string describe_tied(const RunPlan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const TiedBytes& tied = plan.stages[i].tied;
    if (tied.borrowed == 0) continue;
    text += fmt::format(
        "\nStage {} shares weights of other stages: it receives {} of weights once a step, and sends {} of "
        "gradients back with each micro-batch.",
        i, human_bytes(tied.borrowed), human_bytes(tied.returned));
  }
  return text;
}

// A head, then a row for each stage.
std::vector<std::vector<std::string>> stage_rows(const RunPlan& plan) {
  std::vector<std::vector<std::string>> rows{{"stage", "layers", "parameters", "FLOPs per sample",
                                              "received per sample", "alive", "memory per rank"}};
  for (const StagePlan& stage : plan.stages) {
    rows.push_back({fmt::format("{}", rows.size() - 1), stage.layers, with_commas(stage.parameters),
                    with_commas(stage.flops), human_bytes(stage.received_bytes), with_commas(stage.alive),
                    human_bytes(stage.memory.total())});
  }
  return rows;
}

std::string stage_sentences(const RunPlan& plan) {
  return describe_idle(plan) + describe_groups(plan) + describe_balance(plan) + describe_tied(plan);
}

}  // namespace

PlanRecord plan_record(const RunPlan& plan, const Model& model) {
  PlanRecord record{.ranks = plan.ranks(),
                    .servers = plan.dist.servers,
                    .rows = plan.sampling.rows,
                    .parameters = plan.parameters,
                    .steps = plan.steps,
                    .samples = plan.samples,
                    .epochs = plan.epochs,
                    .global_batch = plan.sampling.global_batch,
                    .epoch_samples = plan.epoch_samples,
                    .times_each_seen = plan.times_each_seen,
                    .model = model_rows(model)};
  for (const auto& [label, cell] : rows()) {
    if (const std::string text = cell(plan); !text.empty()) record.table.push_back({label, text});
  }
  if (!plan.stages.empty()) record.stages = stage_rows(plan);
  std::istringstream lines(sentence(plan) + '\n' + (plan.stages.empty() ? "" : stage_sentences(plan)));
  for (std::string line; std::getline(lines, line);) record.sentences.push_back(line);
  return record;
}

std::string plan_table(std::span<const RunPlan> plans) {
  constexpr int kLabelWidth = 24;  // that of the longest, shown or not
  std::vector<std::vector<std::string>> table;
  for (const auto& [label, cell] : rows()) {
    if (std::ranges::all_of(plans, &std::string::empty, cell)) continue;
    table.push_back({fmt::format("{:<{}}", label, kLabelWidth)});
    for (const RunPlan& plan : plans) table.back().push_back(cell(plan));
  }
  std::string text = text_table(table, 1);
  // If only the number of ranks differs, one sentence holds for all columns.
  const auto same = [&](const RunPlan& plan) { return sentence(plan) == sentence(plans.front()); };
  if (std::ranges::all_of(plans, same)) {
    text += sentence(plans.front()) + '\n';
  } else {
    for (const RunPlan& plan : plans) text += fmt::format("np {}: {}\n", plan.ranks(), sentence(plan));
  }
  for (const RunPlan& plan : plans) {
    if (plan.stages.empty()) continue;
    text += plans.size() > 1 ? fmt::format("\nnp {}:\n", plan.ranks()) : "\n";
    text += text_table(stage_rows(plan), 2) + stage_sentences(plan) + '\n';
  }
  return text;
}

std::string plan_summary(const RunPlan& plan) {
  return fmt::format("{} of {}, {}; {}; {} of memory per rank; {} sent per step and rank\n{}\n",
                     plural(plan.steps, "step"), plural(plan.step_batch, "sample"),
                     counted(plan.epochs, "epoch"), plural(plan.parameters, "parameter"),
                     human_bytes(plan.memory.total()), human_bytes(plan.sent_bytes), sentence(plan));
}

std::vector<std::vector<std::string>> model_rows(const Model& model) {
  std::vector<std::vector<std::string>> rows{
      {"layer", "output", "parameters", "FLOPs per sample", "activations"},
      {"input", to_string(model.input()), "", "", ""}};
  using Counts = std::array<Index, 3>;  // as the last three columns
  const auto add = [&](const std::string& layer, const std::string& output, const Counts& counts) {
    rows.push_back({layer, output, with_commas(counts[0]), with_commas(counts[1]), human_bytes(counts[2])});
  };
  std::vector<Index> parameters(model.ops().size());
  for (const ParamInfo& param : model.layout().params) at(parameters, param.layer) += param.shape.size();
  Counts total{};
  for (Index i = 0; i < std::ssize(model.ops()); ++i) {
    const ModelOp& op = model.op(i);
    const Index cached = op.only_reshapes ? 0 : op.cache_size;
    const Index kept = model.owns_output(i) ? op.out.size() : 0;
    const Counts counts{at(parameters, i), op.flops, (kept + cached) * Index{sizeof(Scalar)}};
    std::ranges::transform(total, counts, total.begin(), std::plus<>());
    add(fmt::format("{} {}", op.path, excerpt(op.text)), to_string(op.out), counts);
  }
  add("total", "", total);
  return rows;
}

std::string model_table(const Model& model) {
  return text_table(model_rows(model), 2);
}

}  // namespace lockstep
