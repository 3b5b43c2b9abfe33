// Tells which ranks others wait for, and ends the job when they do not come.
//
// A helper thread of each rank, its watcher, looks at what the main thread does. It may not call MPI, which
// takes one thread only, and whose messages may be what does not get through. So the ranks of a host see each
// other's doings in memory that they share, even those of a rank that is stopped, and one of them reports
// all. Hosts tell each other nothing: each reports for itself.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/options.h"

namespace lockstep {

enum class Phase : int {
  kStart,
  kLoading,   ///< reading the data sets
  kData,      ///< waiting for the loader, or its main thread prepares samples itself
  kCompute,   ///< forward and backward
  kExchange,  ///< exchanging gradients
  kOptimizer,
  kEvaluation,
  kCheckpoint,
  kStageForward,  ///< a micro-batch through this rank's stage of the model; likewise
  kStageBackward
};

inline constexpr std::array<std::string_view, 10> kPhaseNames{
    "start",      "loading", "data",    "forward and backward", "exchange", "optimizer", "evaluation",
    "checkpoint", "forward", "backward"};

// The watched thread tells these of itself; from other threads they are ignored. Each costs a store or two.

/// The phase, and the bucket or micro-batch that it is about.
void note_phase(Phase phase, Index bucket = -1);
/// The step, from 0.
void note_step(Index step);
/// The stage of the model that this rank runs.
void note_stage(Index stage);

class Watchdog : NoCopy {
 public:
  /// *Collective.* Watches the calling thread, whatever communicators it calls, until it is destroyed there.
  /// `ranks_per_node`: see Communicator::split_by_node.
  Watchdog(Communicator& comm, const CommOptions& options, Index ranks_per_node);
  ~Watchdog();

 private:
  class Watcher;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace lockstep
