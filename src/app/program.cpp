#include "program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "commands.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/math/kernels.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

// The command line of this rank, or why it is wrong; ranks can have been given different ones.
struct ParsedLine {
  CommandLine line;
  std::optional<Error> error;
};

// *Local, before there are ranks.* Whether the config, as far as this host can read it, wants several threads
// that talk to other ranks. Errors in it are reported later, by all ranks together.
bool wants_multiple_threads(const CommandLine& line) {
  try {
    ConfigText text;
    if (line.has("config")) text = read_config_file(line.text("config"));
    return load_config(line, text, known_options()).distribute.progress_thread;
  } catch (const Error&) {
    return false;
  }
}

// Refuses when a launcher started several tasks but MPI knows of one: each would train alone.
void refuse_singletons(const Communicator& comm) {
  if (comm.size() > 1) return;
  // Variables of srun, Open MPI, MPICH and its relatives (Hydra, Intel, Cray PALS), and Flux. SLURM_NTASKS
  // alone proves nothing: a batch script sees it before it has started anything.
  for (const char* variable :
       {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_NRANKS", "FLUX_JOB_SIZE"}) {
    const Index tasks = environment_number(variable).value_or(1);
    error_if(
        tasks > 1,
        "the launcher started {} tasks ({}={}), but MPI ({}) sees a world of one: each task would train "
        "alone. Start with the mpirun of that MPI (mpirun -np {} trainer ...), or give srun the right "
        "plug-in (srun --mpi=pmix or --mpi=pmi2; `srun --mpi=list` shows which exist). If the variable is "
        "left over from another start: unset {}",
        tasks, variable, tasks, mpi_library(), tasks, variable);
  }
}

// --model: "RUN@best", "RUN@last" or "RUN@step-500" as the directory of that checkpoint; any other text, and
// the name of something that exists, as it is. Errors: ConfigError if there is no such checkpoint, with those
// that there are; DataError if the directory cannot be read.
std::string find_model(const std::string& text) {
  const std::size_t sign = text.rfind('@');
  if (sign == std::string::npos || is_there(text)) return text;
  const RunDirectory run{text.substr(0, sign)};
  const std::string name = text.substr(sign + 1);
  std::filesystem::path directory = run.checkpoints();
  if (!is_there(directory)) directory = run.noted_checkpoints().value_or(directory);
  const CheckpointDirectory checkpoints(directory);
  std::vector<Index> steps = checkpoints.steps();
  std::optional<Index> wanted = step_of(name);
  if (name == "best") wanted = checkpoints.best();
  if (name == "last" && !steps.empty()) wanted = steps.front();
  if (wanted && std::ranges::find(steps, *wanted) != steps.end())
    return checkpoints.finished(*wanted).string();
  std::vector<std::string> known;
  if (checkpoints.best()) known.emplace_back("best");
  if (!steps.empty()) known.emplace_back("last");
  std::ranges::reverse(steps);
  for (const Index step : steps) known.push_back(fmt::format("step-{}", step));
  throw ConfigError("{}: the run '{}' has no checkpoint {}; {}", in_quotes(text), run.root.string(),
                    in_quotes(name),
                    known.empty() ? fmt::format("there is none in '{}'", checkpoints.root().string())
                                  : fmt::format("those that it has: {}", fmt::join(known, ", ")));
}

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
  std::optional<KeptOutput> result;
  if (writes_to_standard_output(parsed.line) && launched_rank().value_or(0) == 0) result.emplace();
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
