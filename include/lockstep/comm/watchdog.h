// Names the ranks that others wait for, and ends the job when they do not come.
//
// A helper thread of each rank looks at what its main thread does (Activity). It may not call MPI, which
// takes one thread only, and whose messages may be what does not get through. So it needs other ways:
//
// - Inside a node, memory that all ranks share. It holds what each rank did last, even if that rank is
//   stopped and reports nothing any more; it also carries a question, which each watcher answers. A rank that
//   does not answer is stopped, or gone.
// - Between nodes, files in the run directory, which ranks on a cluster see wherever they are. Nothing is
//   read or written there as long as all goes well: the first who finds a stall makes RUN/stall/request and
//   is the one that reports; on other nodes, watchers whose own rank has not got on for some time look for
//   it, and answer with RUN/stall/node-R.json. A node that does not answer is named as such.
//
// Time is what a watcher has seen go by, look by look: a job that was suspended as a whole blames nobody when
// it wakes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/options.h"

namespace lockstep {

class Watchdog {
 public:
  /// The function that the watcher calls on this rank when the job is to end.
  using End = std::function<void()>;

  /// *Collective.* Watches from now on, the thread that this is called on; `ranks_per_node`: see
  /// Communicator::split_by_node. By default the process exits at once, with kExitStalled: the launcher then
  /// ends the others. `comm` outlives it.
  Watchdog(Communicator& comm, const CommOptions& options, Index ranks_per_node, End end = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The communicator that is watched: calls through it are, on one rank as on many.
  Communicator& comm();
  /// *Local.* From now on the watchers of several nodes exchange files in `run_directory`/stall; before, each
  /// node reports for itself.
  void set_rendezvous(const std::filesystem::path& run_directory);

 private:
  class Watcher;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace lockstep
