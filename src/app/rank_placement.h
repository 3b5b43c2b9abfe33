// The placement of the ranks: the batch job, the hosts, and the cores that each of them may use.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

struct RankPlacement {
  Index hosts = 0;                           ///< distinct ones
  std::vector<std::string> host_names = {};  ///< each once, sorted
  std::vector<std::string> host_of = {};     ///< by rank
  std::string summary;                       ///< job and binding, for a line of the log
  std::string table;                         ///< job, then a line for each rank: host and cores
};

/// *Collective.*
RankPlacement find_placement(Communicator& comm);

}  // namespace lockstep
