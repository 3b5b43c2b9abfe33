#include "lockstep/report/stage_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// The formula, or where it does not hold the reason.
std::string describe_formula(const RunPlan& plan) {
  if (plan.chunks == 1) return "by (S - 1) / (m + S - 1)";
  if (plan.micro_batches < std::ssize(plan.stages)) return "as there are fewer micro-batches than stages";
  return fmt::format("by (S - 1) / (v m + S - 1) with v = {} chunks of the model on each rank", plan.chunks);
}

std::string describe_idle(const RunPlan& plan) {
  const Index stages = std::ssize(plan.stages);
  const double share = plan.idle_share(plan.micro_batches);
  std::string text = fmt::format(
      "A group takes {} micro-batch{} through {} stages: each is idle for {:.0f} % of forward and backward, "
      "{}.",
      plan.micro_batches, plan.micro_batches == 1 ? "" : "es", stages, 100 * share, describe_formula(plan));
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

}  // namespace

std::string stage_table(const RunPlan& plan) {
  if (plan.stages.empty()) return "";
  constexpr const char* kLine = "{:<6} {:<{}}  {:>13}  {:>16}  {:>19}  {:>5}  {:>15}\n";
  std::size_t width = 6;
  for (const StagePlan& stage : plan.stages) width = std::max(width, stage.layers.size());
  std::string text = fmt::format(fmt::runtime(kLine), "stage", "layers", width, "parameters",
                                 "FLOPs per sample", "received per sample", "alive", "memory per rank");
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    text += fmt::format(fmt::runtime(kLine), i, stage.layers, width, with_commas(stage.parameters),
                        with_commas(stage.flops), human_bytes(stage.received_bytes), stage.alive,
                        human_bytes(stage.memory.total()));
  }
  return text + describe_idle(plan) + describe_groups(plan) + describe_balance(plan) + describe_tied(plan) +
         '\n';
}

}  // namespace lockstep
