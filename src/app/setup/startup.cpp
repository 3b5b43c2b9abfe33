#include "startup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "catalogs.h"
#include "data_notes.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/session.h"
#include "lockstep/config/toml.h"
#include "lockstep/report/live/run_reports.h"

namespace lockstep {
namespace {

// Ranks by what they have, if they have not all the same: "ranks 0, 1 have A; rank 2 has B".
void refuse_if_different(Communicator& comm, const std::string& what, const std::string& mine,
                         const std::string& advice) {
  const std::vector<std::string> all = gather_texts(comm, mine);
  std::map<std::string, std::vector<std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < all.size(); ++rank) ranks_of[all[rank]].push_back(rank);
  if (ranks_of.size() == 1) return;
  std::string groups;
  for (const auto& [value, ranks] : ranks_of) {
    groups += fmt::format("{}{} {}: {}", groups.empty() ? "" : "; ", ranks.size() == 1 ? "rank" : "ranks",
                          fmt::join(ranks, ", "), value);
  }
  throw AgreedError(fmt::format("the ranks do not have the same {}: {}. {}", what, groups, advice),
                    kExitConfig);
}

std::string describe_sizes(std::span<const RecordSource* const> sources) {
  std::string text;
  for (const RecordSource* source : sources) {
    text += fmt::format("{}{} has {}", text.empty() ? "" : ", ", source->info().name, describe_size(*source));
  }
  return text;
}

}  // namespace

ConfigText read_config_together(Communicator& comm, const CommandLine& line) {
  ConfigText text;
  agree(comm, [&] {
    if (comm.rank() == 0 && !line.config_file.empty()) text = read_config_file(line.config_file);
  });
  text.file = broadcast_text(comm, text.file);
  text.text = broadcast_text(comm, text.text);
  return text;
}

LoadedConfig load_config_together(Communicator& comm, const CommandLine& line, const ConfigText& text,
                                  const Placement& placement) {
  LoadedConfig loaded;
  agree(comm, [&] { loaded = load_checked_config(line, text, placement); });
  return loaded;
}

LoadedConfig load_config_together(Communicator& comm, const CommandLine& line, const Placement& placement) {
  return load_config_together(comm, line, read_config_together(comm, line), placement);
}

bool wants_multiple_threads(const CommandLine& line) {
  try {
    ConfigText text;
    if (!line.config_file.empty()) text = read_config_file(line.config_file);
    return load_config(line, text, known_names()).config.distribute.progress_thread;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<ProgressThread> make_progress_thread(Communicator& comm, const DistOptions& options) {
  if (!options.progress_thread || comm.size() == 1) return nullptr;
  agree(comm, [&] {
    if (comm.takes_threads()) return;
    throw Error(
        "distribute.progress_thread needs MPI_THREAD_MULTIPLE, which MPI did not provide here: set it to "
        "false, or use an MPI library built with it; where only rank 0 can read the config file, give all "
        "ranks --distribute.progress_thread true as a flag",
        kExitComm);
  });
  return std::make_unique<ProgressThread>(comm);
}

void refuse_singletons(const Communicator& comm) {
  if (comm.size() > 1) return;
  // Variables of srun, Open MPI, MPICH and its relatives (Hydra, Intel, Cray PALS), and Flux. SLURM_NTASKS
  // alone proves nothing: a batch script sees it before it has started anything.
  for (const char* variable :
       {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_NRANKS", "FLUX_JOB_SIZE"}) {
    const Index tasks = environment_number(variable).value_or(1);
    if (tasks <= 1) continue;
    throw ConfigError(fmt::format(
        "the launcher started {} tasks ({}={}), but MPI ({}) sees a world of one: each task would train "
        "alone. Start with the mpirun of that MPI (mpirun -np {} trainer ...), or give srun the right "
        "plug-in (srun --mpi=pmix or --mpi=pmi2; `srun --mpi=list` shows which exist). If the variable is "
        "left over from another start: unset {}",
        tasks, variable, tasks, mpi_library(), tasks, variable));
  }
}

void refuse_different_commands(Communicator& comm, const CommandLine& line) {
  const std::string what = line.model.empty() ? "train" : "--model " + line.model;
  refuse_if_different(comm, "command",
                      fmt::format("{} {} --config '{}'", line.command, what, line.config_file),
                      "Give all ranks the same.");
}

void refuse_differences(Communicator& comm, const Config& config) {
  refuse_if_different(comm, "config", fmt::format("hash {:016x}", config_hash(config)),
                      "Give all ranks the same flags.");
  std::string program_hash;
  agree(comm, [&] { program_hash = fmt::format("hash {:016x}", hash_text(read_file("/proc/self/exe"))); });
  refuse_if_different(comm, "program", program_hash, "Install the same build of trainer on all hosts.");
}

void refuse_different_data(Communicator& comm, std::span<const RecordSource* const> sources) {
  refuse_if_different(comm, "data", describe_sizes(sources), "Copy the same files to all hosts.");
}

void warn_of_few_cores(Communicator& comm, Index threads) {
  const std::string warning = few_cores_warning(gather_numbers(comm, cores_at_hand()), threads);
  if (comm.rank() == 0 && !warning.empty()) log_warning("{}", warning);
}

}  // namespace lockstep
