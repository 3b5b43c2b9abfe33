#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "commands.h"
#include "data_notes.h"
#include "experiment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/print.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/report/model_table.h"
#include "lockstep/report/plan_table.h"
#include "rank_memory.h"
#include "shard_balance.h"
#include "stage_choice.h"

namespace lockstep {
namespace {

// Warns of the first plan that may fail on a machine like this one.
std::string memory_warning(const std::vector<RunPlan>& plans) {
  for (const RunPlan& plan : plans) {
    const std::string doubt = doubt_of_memory(plan);
    if (!doubt.empty()) return fmt::format("WARNING: {}\n", doubt);
  }
  return "";
}

RunPlan plan_of(Experiment& experiment, Index world) {
  const DistOptions& distribute = experiment.config.distribute;
  const std::vector<Index> nodes = full_nodes(world, experiment.config.debug.ranks_per_node);
  // Nodes that are pretended are this host too.
  const Index ranks_of_host = nodes.empty() ? world : std::ranges::max(nodes);
  divide_as_needed(experiment, world, nodes, memory_of_rank(distribute.memory_per_rank, ranks_of_host));
  const RunPlan plan = experiment.plan(world, nodes);
  refuse_too_large(plan, distribute.memory_per_rank);
  return plan;
}

}  // namespace

// A number of ranks that cannot be run does not hide the others: its reason stands below the table.
int plan_command(const CommandLine& line) {
  Experiment experiment =
      make_experiment(load_checked_config(line, read_config_file(line.config_file),
                                          {.ranks = std::ranges::max(line.plan_np), .hosts = 1}),
                      alone());
  log_notes(experiment.sources());
  std::vector<RunPlan> plans;
  std::vector<std::string> refused;
  for (const Index world : line.plan_np) {
    try {
      plans.push_back(plan_of(experiment, world));
    } catch (const ConfigError& error) {
      refused.push_back(fmt::format("np {}: {}", world, error.what()));
    }
  }
  if (plans.empty()) throw ConfigError(refused.front());
  print_out("{}\n{}", model_table(*experiment.model), plan_table(plans));
  print_text(warn_of_uneven_shards(experiment, plans.back().sampling));
  print_text(memory_warning(plans));
  for (const std::string& reason : refused) print_out("{}\n", reason);
  return 0;
}

}  // namespace lockstep
