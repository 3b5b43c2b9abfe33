// The cut under a limit. An estimate (StageMemory) chooses it and the plan decides whether it holds. The
// estimate may be a little off, and it knows nothing of the other chunks of a rank: so the limit for a part
// is lowered step by step until the plan of a division fits.
#include "stage_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {
namespace {

// A division of the model with its plan.
struct FoundDivision {
  std::vector<std::unique_ptr<Model>> stages;
  RunPlan plan;
  std::string why;  // where it is cut for the sake of memory, for a log; "" if memory did not matter

  Index count() const { return std::max<Index>(1, std::ssize(stages)); }
};

bool names_layers(const DistOptions& distribute) {
  return distribute.cut.size() != 1 || distribute.cut.front() != kAutoCut;
}

std::vector<Index> possible_stages(const DistOptions& distribute, Index world) {
  const std::vector<std::string>& cut = distribute.cut;
  if (names_layers(distribute)) {
    return {std::max<Index>(2, divide_up(std::ssize(cut) + 1, distribute.schedule.chunks))};
  }
  std::vector<Index> divisors;
  for (Index stages = 1; stages <= world; ++stages) {
    if (world % stages == 0) divisors.push_back(stages);
  }
  return divisors;
}

// The parts of all ranks in the order of the model.
std::vector<Range> parts_of(std::span<const std::unique_ptr<Model>> stages) {
  std::vector<Range> parts;
  for (const std::unique_ptr<Model>& stage : stages) {
    for (Index i = 0; i < stage->chunks(); ++i) parts.push_back(stage->chunk(i).stage());
  }
  std::ranges::sort(parts, {}, &Range::begin);
  return parts;
}

std::vector<std::string> cut_before(const Experiment& experiment, const std::vector<Range>& parts) {
  std::vector<std::string> cut;
  for (std::size_t i = 1; i < parts.size(); ++i) cut.push_back(experiment.model->op(parts[i].begin).path);
  return cut;
}

FoundDivision planned(const Experiment& experiment, const Config& config, const MemoryBudget& budget,
                      std::vector<std::unique_ptr<Model>> stages) {
  RunPlan plan = make_run_plan(experiment.plan_request(config, stages, budget.world, budget.node_sizes));
  return {.stages = std::move(stages), .plan = std::move(plan), .why = ""};
}

// The division whose largest rank fits, or needs least, among those under limits for a part: from that of a
// rank down to half of the share of one chunk. `even`: the division by work.
FoundDivision search(const Experiment& experiment, const Config& config, const MemoryBudget& budget,
                     FoundDivision even) {
  constexpr Index kSteps = 32;
  const std::vector<std::unique_ptr<Model>> models = experiment.divided(config.distribute);
  const RunPlanRequest request = experiment.plan_request(config, models, budget.world, budget.node_sizes);
  const auto make = [&](Range ops) {
    auto model = std::make_unique<Model>(experiment.config.model, *experiment.model, ops);
    OptimizerMemory optimizer(*experiment.optimizer, model->layout());
    return StageMemory::Stage{.model = std::move(model), .optimizer = std::move(optimizer)};
  };
  const RunPlan plan = even.plan;
  StageMemory memory(request, plan, make);
  const Index chunks = config.distribute.schedule.chunks;
  FoundDivision best = std::move(even);
  std::vector<Range> last = parts_of(best.stages);
  for (Index step = 0; step <= kSteps - kSteps / (2 * chunks); ++step) {
    const PartMemory limited{.limit = budget.limit.bytes - budget.limit.bytes / kSteps * step,
                             .bytes = [&](Range ops, Index part) { return memory.bytes(ops, part); }};
    const std::vector<Range> parts = divide_within(*experiment.model, std::ssize(last), limited);
    if (parts.empty() || parts == last) continue;
    last = parts;
    FoundDivision found =
        planned(experiment, config, budget, experiment.stages_of(parts, config.distribute.stages));
    if (found.plan.memory.total() >= best.plan.memory.total()) continue;
    best = std::move(found);
    if (best.plan.memory.total() <= budget.limit.bytes) break;
  }
  return best;
}

FoundDivision divide_to_fit(const Experiment& experiment, const Config& config, const MemoryBudget& budget) {
  FoundDivision even = planned(experiment, config, budget, experiment.divided(config.distribute));
  const Index needed = even.plan.memory.total();
  if (even.stages.empty() || names_layers(config.distribute) || needed <= budget.limit.bytes) return even;
  const std::vector<Range> before = parts_of(even.stages);
  FoundDivision found = search(experiment, config, budget, std::move(even));
  const std::vector<Range> parts = parts_of(found.stages);
  const Index least = found.plan.memory.total();
  const std::string moved =
      parts == before ? fmt::format("cut before {}", fmt::join(cut_before(experiment, parts), ", "))
                      : fmt::format("cut before {}, not before {} where the work is even and a rank needs {}",
                                    fmt::join(cut_before(experiment, parts), ", "),
                                    fmt::join(cut_before(experiment, before), ", "), human_bytes(needed));
  found.why =
      fmt::format("distribute.cut = \"auto\": {}, so that a rank needs {}, {} {} ({})", moved,
                  human_bytes(least), least <= budget.limit.bytes ? "within" : "the least found, above",
                  human_bytes(budget.limit.bytes), budget.limit.reason);
  return found;
}

FoundDivision choose_division(const Experiment& experiment, const MemoryBudget& budget) {
  Config tried = experiment.config;
  FoundDivision least;  // of those that are too large
  std::string refused;  // why the model is not divided further
  for (const Index stages : possible_stages(tried.distribute, budget.world)) {
    tried.distribute.stages = stages;
    try {
      FoundDivision found = divide_to_fit(experiment, tried, budget);
      const Index needed = found.plan.memory.total();
      if (needed <= budget.limit.bytes) return found;
      if (least.plan.memory.total() == 0 || needed < least.plan.memory.total()) least = std::move(found);
    } catch (const ConfigError& error) {
      if (refused.empty()) refused = error.what();
    }
  }
  if (least.plan.memory.total() == 0) throw ConfigError(refused);
  const std::string advice =
      refused.empty() ? "start more ranks, lower train.global_batch or eval.batch, or raise train.accumulate"
                      : fmt::format("more stages cannot be had: {}", refused);
  throw ConfigError(
      "distribute.stages = \"auto\": on {} a rank needs at least {} (with {}), but can have {} ({}); {}",
      plural(budget.world, "rank"), human_bytes(least.plan.memory.total()), plural(least.count(), "stage"),
      human_bytes(budget.limit.bytes), budget.limit.reason, advice);
}

}  // namespace

std::vector<std::string> divide_as_needed(Experiment& experiment, const MemoryBudget& budget) {
  std::vector<std::string> reasons;
  const Config& config = experiment.config;
  if (config.distribute.stages == 1) return reasons;
  const bool chooses = config.distribute.stages == kAutoStages;
  FoundDivision found =
      chooses ? choose_division(experiment, budget) : divide_to_fit(experiment, config, budget);
  if (chooses) {
    const std::string why = names_layers(config.distribute)
                                ? "as distribute.cut says"
                                : fmt::format("the fewest with which a rank fits into {} ({})",
                                              human_bytes(budget.limit.bytes), budget.limit.reason);
    reasons.push_back(
        fmt::format("distribute.stages = \"auto\": {}, {}", plural(found.count(), "stage"), why));
  }
  experiment.stages = std::move(found.stages);
  if (!found.why.empty()) reasons.push_back(std::move(found.why));
  return reasons;
}

std::optional<std::vector<std::string>> cut_of_division(const Experiment& experiment) {
  if (experiment.stages.empty()) return std::nullopt;
  const std::vector<Range> parts = parts_of(experiment.stages);
  DistOptions distribute = experiment.config.distribute;
  distribute.stages = std::ssize(experiment.stages);
  const auto repeats = [&] { return parts_of(experiment.divided(distribute)) == parts; };
  if (repeats()) return std::nullopt;
  distribute.cut = cut_before(experiment, parts);
  if (!repeats()) return std::nullopt;
  return distribute.cut;
}

}  // namespace lockstep
