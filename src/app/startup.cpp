#include "startup.h"

#include "lockstep/comm/agree.h"

namespace lockstep {

LoadedConfig load_config_together(Communicator& comm, const CommandLine& line) {
  ConfigText text;
  agree(comm, [&] {
    if (comm.rank() == 0 && !line.config_file.empty()) text = read_config_file(line.config_file);
  });
  text.file = broadcast_text(comm, text.file);
  text.text = broadcast_text(comm, text.text);
  LoadedConfig loaded;
  agree(comm, [&] { loaded = load_checked_config(line, text); });
  return loaded;
}

}  // namespace lockstep
