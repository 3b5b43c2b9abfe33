#include <fmt/format.h>

#include <vector>

#include "commands.h"
#include "experiment.h"

namespace lockstep {

int plan_command(const CommandLine& line) {
  const Experiment experiment =
      make_experiment(load_checked_config(line, read_config_file(line.config_file)));
  std::vector<RunPlan> plans;
  for (const Index world : line.plan_np) plans.push_back(experiment.plan(world));
  fmt::print("{}", plan_table(plans));
  return 0;
}

}  // namespace lockstep
