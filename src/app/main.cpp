// trainer: parse the command line, then hand over to a subcommand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <optional>

#include "app/setup/catalogs.h"
#include "app/setup/guards.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "commands.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/memory_limit.h"
#include "lockstep/base/stop_signal.h"
#include "lockstep/base/terminal.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/session.h"
#include "lockstep/config/help.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

using Command = CommandLine::Command;

int print(const std::string& text) {
  print_text(text);
  return 0;
}

// Commands that need no other ranks.
std::optional<int> run_alone(const CommandLine& line) {
  switch (line.command) {
    case Command::kHelp:
    case Command::kTopic:
      return help_command(line);
    case Command::kHelpAll:
      return print(full_help(known_options()));
    case Command::kVersion:
      return version_command(line);
    case Command::kReference:
      return reference_command(line);
    case Command::kPlan:
      return line.planned.nodes > 0 ? scale_command(line) : plan_command(line);
    case Command::kExport:
      return export_command(line);
    case Command::kInspect:
      return inspect_command(line);
    case Command::kInit:
      return init_command(line);
    case Command::kCompare:
      return compare_command(line);
    case Command::kReport:
      return report_command(line);
    case Command::kExportMetrics:
      return export_metrics_command(line);
    case Command::kStatus:
      return status_command(line);
    case Command::kWatch:
      return watch_command(line);
    case Command::kTrace:
      return trace_command(line);
    case Command::kTrain:
    case Command::kSweep:
    case Command::kCrossValidate:
    case Command::kEval:
    case Command::kPredict:
    case Command::kImportance:
    case Command::kBench:
      return std::nullopt;
  }
  return std::nullopt;
}

// The command line of this rank, or why it is wrong; ranks can have been given different ones.
struct ParsedLine {
  CommandLine line;
  std::optional<Error> error;
};

ParsedLine parse(const std::vector<std::string>& arguments) {
  try {
    CommandLine line = parse_command_line(arguments, known_names());
    line.model = find_model(line.model);
    return {std::move(line), std::nullopt};
  } catch (const Error& error) {
    return {{}, error};
  }
}

bool trains(Command command) {
  return command == Command::kTrain || command == Command::kSweep || command == Command::kCrossValidate;
}

LogTarget log_target(const CommandLine& line) {
  return writes_to_standard_output(line) ? LogTarget::kStandardError : LogTarget::kStandardOutput;
}

int run_with_ranks(Communicator& comm, const ParsedLine& parsed) {
  start_log(comm.rank(), log_target(parsed.line));
  agree(comm, [&] {
    if (parsed.error) throw *parsed.error;
    refuse_singletons(comm);
  });
  refuse_different_commands(comm, parsed.line);
  if (parsed.line.command == Command::kTrain) return train_command(comm, parsed.line);
  if (parsed.line.command == Command::kSweep) return sweep_command(comm, parsed.line);
  if (parsed.line.command == Command::kCrossValidate) return cv_command(comm, parsed.line);
  const auto command = parsed.line.command == Command::kEval         ? eval_command
                       : parsed.line.command == Command::kPredict    ? predict_command
                       : parsed.line.command == Command::kImportance ? importance_command
                                                                     : bench_command;
  const int exit_code = command(comm, parsed.line);
  agree(comm, finish_printing);
  return exit_code;
}

// The probable reason why a command without ranks ran out of memory: its inputs.
std::string describe_inputs(const CommandLine& line) {
  std::vector<std::string> inputs;
  for (const std::string& file : {line.config_file, line.model, line.data}) {
    if (!file.empty()) inputs.push_back(fmt::format("'{}'", file));
  }
  return fmt::format("what {} asks for is too large for this machine or for its limits (ulimit -v)",
                     fmt::join(inputs, " with "));
}

int run(const std::vector<std::string>& arguments) {
  start_log(0);
  fix_kernel_settings();
  const ParsedLine parsed = parse(arguments);
  start_log(0, log_target(parsed.line));
  try {
    if (!parsed.error) {
      if (const std::optional<int> exit_code = run_alone(parsed.line)) {
        finish_printing();
        return *exit_code;
      }
      if (trains(parsed.line.command)) {
        note_stop_signals();            // before MPI makes threads
        std::signal(SIGPIPE, SIG_IGN);  // the reader of its log may go away: `| head`
      }
    }
    const bool threads = !parsed.error && wants_multiple_threads(parsed.line);
    return run_session([&](Communicator& comm) { return run_with_ranks(comm, parsed); },
                       threads ? ThreadLevel::kMultiple : ThreadLevel::kFunneled);
  } catch (const Error& error) {
    log_error("{}", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    log_error("{}: {}", describe_out_of_memory(error), describe_inputs(parsed.line));
    return kExitConfig;
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run({argv + 1, argv + argc});
}
