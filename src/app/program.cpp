#include "program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <optional>

#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "commands.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/terminal.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/session.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

// The command line of this rank, or why it is wrong; ranks can have been given different ones.
struct ParsedLine {
  CommandLine line;
  std::optional<Error> error;
};

ParsedLine parse(const std::vector<std::string>& arguments) {
  try {
    CommandLine line = parse_command_line(arguments, known_options());
    if (line.has("model")) line.flags["model"] = {find_model(line.text("model"))};
    return {std::move(line), std::nullopt};
  } catch (const Error& error) {
    return {{}, error};
  }
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
  const CommandFunction& command = function_of(parsed.line);
  const int exit_code = command.with_ranks(comm, parsed.line);
  if (!command.trains) agree(comm, finish_printing);
  return exit_code;
}

// The probable reason why a command without ranks ran out of memory: its inputs.
std::string describe_inputs(const CommandLine& line) {
  std::vector<std::string> inputs;
  std::vector<std::string> files{line.text("config"), line.text("model")};
  files.insert(files.end(), line.operands.begin(), line.operands.end());
  for (const std::string& file : files) {
    if (!file.empty()) inputs.push_back(fmt::format("'{}'", file));
  }
  return fmt::format("what {} asks for is too large for this machine or for its limits (ulimit -v)",
                     fmt::join(inputs, " with "));
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const Session& session) {
  start_log(0);
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file at the limit of `ulimit -f` is an error of write(), as a full disk is
  fix_kernel_settings();
  const ParsedLine parsed = parse(arguments);
  start_log(0, log_target(parsed.line));
  try {
    if (!parsed.error) {
      const CommandFunction& command = function_of(parsed.line);
      if (command.alone != nullptr) {
        if (launched_rank().value_or(0) > 0) return 0;  // the first of several does it
        const int exit_code = command.alone(parsed.line);
        finish_printing();
        return exit_code;
      }
      if (command.trains) {
        // Before MPI makes threads, and for good: one that comes at the very end changes nothing any more.
        [[maybe_unused]] static const auto* const kept = new StopSignals;
        std::signal(SIGPIPE, SIG_IGN);  // the reader of its log may go away: `| head`
      }
    }
    const bool threads = !parsed.error && wants_multiple_threads(parsed.line);
    return session([&](Communicator& comm) { return run_with_ranks(comm, parsed); },
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

}  // namespace lockstep
