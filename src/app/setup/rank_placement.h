// The placement of the ranks: the batch job, the hosts, and the cores that each of them may use.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

struct RankPlacement {
  std::vector<std::string> host_of = {};  ///< by rank
  std::string summary;                    ///< job and binding, for a line of the log
  std::string table;                      ///< job, then a line for each rank: host and cores

  /// The hosts, each once, sorted.
  std::vector<std::string> host_names() const;
  /// How many hosts there are.
  Index hosts() const { return std::ssize(host_names()); }
};

/// *Collective.*
RankPlacement find_placement(Communicator& comm);

}  // namespace lockstep
