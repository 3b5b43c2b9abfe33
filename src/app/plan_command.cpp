#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "commands.h"
#include "data_notes.h"
#include "experiment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/memory_limit.h"
#include "lockstep/base/print.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/report/model_table.h"
#include "lockstep/report/plan_table.h"
#include "shard_balance.h"

namespace lockstep {
namespace {

// Warns of plans that would be refused, or may fail, on a machine like this one.
std::string warn_of_memory(const std::vector<RunPlan>& plans) {
  const MemoryLimit limit = memory_limit();
  const auto too_large = [&](const RunPlan& plan) { return plan.memory.total() > limit.bytes; };
  const auto found = std::ranges::find_if(plans, too_large);
  if (found == plans.end()) return "";
  return fmt::format("WARNING: with np {} a rank may need {}, but here it can have {} ({})\n", found->ranks(),
                     human_bytes(static_cast<double>(found->memory.total())),
                     human_bytes(static_cast<double>(limit.bytes)), limit.reason);
}

}  // namespace

// A number of ranks that cannot be run does not hide the others: its reason stands below the table.
int plan_command(const CommandLine& line) {
  const Experiment experiment =
      make_experiment(load_checked_config(line, read_config_file(line.config_file),
                                          {.ranks = std::ranges::max(line.plan_np), .hosts = 1}),
                      alone());
  log_notes(experiment.sources());
  std::vector<RunPlan> plans;
  std::vector<std::string> refused;
  for (const Index world : line.plan_np) {
    try {
      plans.push_back(experiment.plan(world, full_nodes(world, experiment.config.debug.ranks_per_node)));
    } catch (const ConfigError& error) {
      refused.push_back(fmt::format("np {}: {}", world, error.what()));
    }
  }
  if (plans.empty()) throw ConfigError(refused.front());
  print_out("{}\n{}", model_table(*experiment.model), plan_table(plans));
  print_text(warn_of_uneven_shards(experiment, plans.back().sampling));
  print_text(warn_of_memory(plans));
  for (const std::string& reason : refused) print_out("{}\n", reason);
  return 0;
}

}  // namespace lockstep
