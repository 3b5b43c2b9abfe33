#include "stage_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/stages.h"

namespace lockstep {
namespace {

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

std::string bytes_text(Index bytes) {
  return human_bytes(static_cast<double>(bytes));
}

}  // namespace

Index choose_stages(const Experiment& experiment, Index world, const std::vector<Index>& node_sizes,
                    const MemoryLimit& limit) {
  Config tried = experiment.config;
  Index least = 0;  // memory of the plans that are too large
  Index stages_of_least = 0;
  std::string refused;  // why the model is not divided further
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
      if (refused.empty()) refused = error.what();
    }
  }
  if (stages_of_least == 0) throw ConfigError(refused);
  const std::string advice =
      refused.empty() ? "start more ranks, lower train.global_batch or eval.batch, or raise train.accumulate"
                      : fmt::format("more stages cannot be had: {}", refused);
  throw ConfigError(
      fmt::format("distribute.stages = \"auto\": on {} rank{} a rank needs at least {} (with {} stage{}), "
                  "but can have {} ({}); {}",
                  world, world == 1 ? "" : "s", bytes_text(least), stages_of_least,
                  stages_of_least == 1 ? "" : "s", bytes_text(limit.bytes), limit.reason, advice));
}

std::string divide_as_needed(Experiment& experiment, Index world, const std::vector<Index>& node_sizes,
                             const MemoryLimit& limit) {
  if (experiment.config.distribute.stages != kAutoStages) return "";
  const Index stages = choose_stages(experiment, world, node_sizes, limit);
  DistOptions chosen = experiment.config.distribute;
  chosen.stages = stages;
  experiment.stages = experiment.divided(chosen);
  const std::string why = names_layers(chosen) ? "as distribute.cut says"
                                               : fmt::format("the fewest with which a rank fits into {} ({})",
                                                             bytes_text(limit.bytes), limit.reason);
  return fmt::format("distribute.stages = \"auto\": {} stage{}, {}", stages, stages == 1 ? "" : "s", why);
}

}  // namespace lockstep
