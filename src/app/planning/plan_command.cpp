#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "app/commands.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "app/setup/rank_placement.h"
#include "app/setup/run_config.h"
#include "app/setup/stage_choice.h"
#include "app/setup/startup.h"
#include "app/training/announcement.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/report/tables/tables.h"

namespace lockstep {
namespace {

constexpr Index kMaxRanks = kAnyRanks.end - 1;

std::vector<Index> parse_world_sizes(const CommandLine& line) {
  const std::string text = line.value("np").value_or("1");
  std::vector<Index> sizes;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    sizes.push_back(ValueType<Index>::parse(item).value_or(0));
  }
  const bool fits = std::ranges::all_of(sizes, [](Index size) { return size >= 1 && size <= kMaxRanks; });
  error_if(sizes.empty() || !fits || text.ends_with(','),
           "--np: expected numbers of ranks from 1 to {}, such as 1,2,4,8, found {}", kMaxRanks,
           in_quotes(text));
  return sizes;
}

// Warns of the first plan that may fail on a machine like this one.
std::string memory_warning(const std::vector<RunPlan>& plans) {
  for (const RunPlan& plan : plans) {
    const std::string doubt = doubt_of_memory(plan);
    if (!doubt.empty()) return fmt::format("WARNING: {}\n", doubt);
  }
  return "";
}

// The plans of the numbers of ranks, and what is said below their table.
struct Plans {
  std::vector<RunPlan> plans;
  std::vector<std::string> notes;
};

// A plan may be meant for another machine: the memory of this one decides only where nothing else says how
// many stages there are. One that a run would refuse here for its memory is shown all the same. Nodes that
// are pretended (debug.ranks_per_node) are this host, too.
void add_plan(Experiment& experiment, Index world, Plans& plans) {
  const double stated = experiment.config.distribute.memory_per_rank;
  const std::vector<Index> nodes = full_nodes(world, experiment.config.debug.ranks_per_node);
  const auto note = [&](const std::string& text) {
    if (!text.empty()) plans.notes.push_back(fmt::format("np {}: {}", world, text));
  };
  try {
    const bool chooses = experiment.config.distribute.stages == kAutoStages;
    const MemoryBudget budget{
        .world = world,
        .node_sizes = nodes,
        .limit = chooses && stated == 0 ? memory_of_rank(0, world) : memory_elsewhere(stated)};
    for (const std::string& reason : divide_as_needed(experiment, budget)) note(reason);
  } catch (const ConfigError& error) {
    if (experiment.config.distribute.stages != kAutoStages) throw;
    note(error.what());
    experiment.stages.clear();
  }
  plans.plans.push_back(experiment.plan(world, nodes));
  try {
    refuse_too_large(plans.plans.back(), stated);
  } catch (const ConfigError& error) {
    note(error.what());
  }
}

}  // namespace

// A number of ranks that cannot be run does not hide the others: its reason stands below the table.
int plan_command(const CommandLine& line) {
  const std::vector<Index> worlds = parse_world_sizes(line);
  Experiment experiment = make_experiment(
      load_training_config(line, read_config_file(line.text("config")), {.ranks = std::ranges::max(worlds)}),
      alone());
  log_notes(experiment.sources());
  Plans found;
  for (const Index world : worlds) {
    try {
      add_plan(experiment, world, found);
    } catch (const ConfigError& error) {
      found.notes.push_back(fmt::format("np {}: {}", world, error.what()));
    }
  }
  const auto& [plans, notes] = found;
  if (plans.empty()) throw ConfigError(notes.front());
  if (line.has("json")) {
    check_outputs(line, {});
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const RunPlan& plan : plans) all.push_back(to_json(plan_record(plan, *experiment.model)));
    write_output(line.text("json"), indented(all));
  }
  std::string text = model_table(*experiment.model) + "\n" + plan_table(plans);
  const std::string padding = describe_padding(experiment, plans.back().sampling).text;
  if (!padding.empty()) text += padding + "\n";
  text += warn_of_uneven_shards(experiment, plans.back().sampling) + memory_warning(plans);
  for (const std::string& note : notes) text += note + "\n";
  print_report(line, text);
  return 0;
}

}  // namespace lockstep
