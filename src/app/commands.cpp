#include "commands.h"

#include <algorithm>
#include <array>

#include "app/setup/catalogs.h"
#include "lockstep/base/terminal.h"
#include "lockstep/config/help.h"

namespace lockstep {

// Each in a file of its own, or with its like.
int train_command(Communicator& comm, const CommandLine& line);
int sweep_command(Communicator& comm, const CommandLine& line);
int cv_command(Communicator& comm, const CommandLine& line);
int plan_command(const CommandLine& line);
int bench_command(Communicator& comm, const CommandLine& line);
int eval_command(Communicator& comm, const CommandLine& line);
int predict_command(Communicator& comm, const CommandLine& line);
int generate_command(const CommandLine& line);
int importance_command(Communicator& comm, const CommandLine& line);
int export_command(const CommandLine& line);
int inspect_command(const CommandLine& line);
int init_command(const CommandLine& line);
int compare_command(const CommandLine& line);
int report_command(const CommandLine& line);
int export_metrics_command(const CommandLine& line);
int watch_command(const CommandLine& line);
int trace_command(const CommandLine& line);
int reference_command(const CommandLine& line);
int help_command(const CommandLine& line);
int version_command(const CommandLine& line);

namespace {

int full_help_command(const CommandLine&) {
  print_text(full_help(known_options()));
  return 0;
}

}  // namespace

std::span<const CommandFunction> command_functions() {
  static constexpr std::array kFunctions{
      CommandFunction{.name = "", .with_ranks = train_command, .trains = true},
      CommandFunction{.name = "sweep", .with_ranks = sweep_command, .trains = true},
      CommandFunction{.name = "cv", .with_ranks = cv_command, .trains = true},
      CommandFunction{.name = "plan", .alone = plan_command},
      CommandFunction{.name = "bench", .with_ranks = bench_command},
      CommandFunction{.name = "eval", .with_ranks = eval_command},
      CommandFunction{.name = "predict", .with_ranks = predict_command},
      CommandFunction{.name = "generate", .alone = generate_command},
      CommandFunction{.name = "importance", .with_ranks = importance_command},
      CommandFunction{.name = "export", .alone = export_command},
      CommandFunction{.name = "inspect", .alone = inspect_command},
      CommandFunction{.name = "init", .alone = init_command},
      CommandFunction{.name = "compare", .alone = compare_command},
      CommandFunction{.name = "report", .alone = report_command},
      CommandFunction{.name = "export-metrics", .alone = export_metrics_command},
      CommandFunction{.name = "status", .alone = watch_command},
      CommandFunction{.name = "watch", .alone = watch_command},
      CommandFunction{.name = "trace", .alone = trace_command},
      CommandFunction{.name = "reference", .alone = reference_command},
      CommandFunction{.name = "help", .alone = help_command},
      CommandFunction{.name = "--help", .alone = help_command},
      CommandFunction{.name = "--help-all", .alone = full_help_command},
      CommandFunction{.name = "--version", .alone = version_command},
  };
  return kFunctions;
}

const CommandFunction& function_of(const CommandLine& line) {
  return *std::ranges::find(command_functions(), line.command, &CommandFunction::name);
}

}  // namespace lockstep
