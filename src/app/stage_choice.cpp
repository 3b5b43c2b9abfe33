#include "stage_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/stages.h"

namespace lockstep {
namespace {

std::vector<Index> possible_stages(const DistOptions& distribute, Index world) {
  const std::vector<std::string>& cut = distribute.cut;
  if (cut.size() != 1 || cut.front() != kAutoCut) {
    return {std::max<Index>(1, (std::ssize(cut) + 1) / distribute.schedule.chunks)};
  }
  std::vector<Index> divisors;
  for (Index stages = 1; stages <= world; ++stages) {
    if (world % stages == 0) divisors.push_back(stages);
  }
  return divisors;
}

std::string bytes_text(Index bytes) {
  return human_bytes(static_cast<double>(bytes));
}

}  // namespace

Index choose_stages(const Experiment& experiment, Index world, const std::vector<Index>& node_sizes,
                    const MemoryLimit& limit) {
  Config tried = experiment.config;
  Index least = 0;  // memory of the plans that are too large
  Index stages_of_least = 0;
  std::string refused;
  for (const Index stages : possible_stages(tried.distribute, world)) {
    tried.distribute.stages = stages;
    try {
      const Index needed = experiment.plan(tried, world, node_sizes).memory.total();
      if (needed <= limit.bytes) return stages;
      if (stages_of_least == 0 || needed < least) {
        least = needed;
        stages_of_least = stages;
      }
    } catch (const ConfigError& error) {
      if (stages == 1 || refused.empty()) refused = error.what();
    }
  }
  if (stages_of_least == 0) throw ConfigError(refused);
  throw ConfigError(fmt::format(
      "distribute.stages = \"auto\": on {} rank{} a rank needs at least {} (with {} stage{}), but can have "
      "{} "
      "({}); start more ranks, lower train.global_batch or eval.batch, or raise train.accumulate; `trainer "
      "plan` shows what the memory is for",
      world, world == 1 ? "" : "s", bytes_text(least), stages_of_least, stages_of_least == 1 ? "" : "s",
      bytes_text(limit.bytes), limit.reason));
}

std::string divide_as_needed(Experiment& experiment, Index world, const std::vector<Index>& node_sizes,
                             const MemoryLimit& limit) {
  if (experiment.config.distribute.stages != kAutoStages) return "";
  const Index stages = choose_stages(experiment, world, node_sizes, limit);
  DistOptions chosen = experiment.config.distribute;
  chosen.stages = stages;
  experiment.stages = experiment.divided(chosen);
  return fmt::format(
      "distribute.stages = \"auto\": {} stage{}, the fewest with which a rank fits into {} ({})", stages,
      stages == 1 ? "" : "s", bytes_text(limit.bytes), limit.reason);
}

}  // namespace lockstep
