#include "startup.h"

#include "catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"

namespace lockstep {

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

}  // namespace lockstep
