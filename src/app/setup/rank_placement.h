// The placement of the ranks: the batch job, the hosts, and the cores that each of them may use.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/process.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

struct RankPlacement {
  std::vector<std::string> host_of = {};  ///< by rank
  std::string summary;                    ///< job and binding, for a line of the log
  std::string table;                      ///< job, then a line for each rank: host and cores
  std::vector<std::string> cores = {};    ///< by rank, as taskset writes them

  /// The hosts, each once, sorted.
  std::vector<std::string> host_names() const;
  /// How many hosts there are.
  Index hosts() const { return std::ssize(host_names()); }
};

/// *Collective.*
RankPlacement find_placement(Communicator& comm);

// The memory that a rank can have, against that which a plan needs.

/// The limit for one of so many ranks of a host: its own, or its share of what the host has; `stated` (GiB,
/// as distribute.memory_per_rank), if that is less and not 0.
MemoryLimit memory_of_rank(double stated, Index ranks_of_host);
/// The limit for a rank of other machines than this: `stated`, if it is not 0, else none.
MemoryLimit memory_elsewhere(double stated);
/// *Collective.* The smallest limit of all ranks.
MemoryLimit smallest_limit(Communicator& comm, const MemoryLimit& mine);

/// Refuses a model whose weights alone are more than a process can have here, before a plan is made. Errors:
/// ConfigError with both figures.
void refuse_too_large(const Model& model);
/// Refuses a plan whose weights, optimizer state and gradients alone are more than a worker (or a server) can
/// have here, or whose whole memory, which counts the most that may be needed, is more than `stated`. Errors:
/// ConfigError with both figures.
void refuse_too_large(const RunPlan& plan, double stated, bool server = false);
/// The words of a warning where a worker cannot have the whole memory of the plan here; "" if it can.
std::string doubt_of_memory(const RunPlan& plan);
/// Logs them.
void warn_of_memory(const RunPlan& plan);

}  // namespace lockstep
