// The directory of a sweep: a run directory for each trial, and what is known of the trials.
//
//   sweep.toml        the config that the trials share, and the flags that tell them apart
//   trial-0007/       the run directory of trial 7
//   rows/trial-0007.json    its row: how it ended and what came out
//   sweep.json        all rows, best first
//   stop              made by a user: all trials save themselves and stop
//   lock, rows/claims/      which process works here, and which trials its groups have taken
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/base/types.h"
#include "lockstep/config/command_line.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

struct SweepDirectory {
  std::filesystem::path root;
  std::string word = "trial";  ///< what a trial is called
  Index refit = 0;             ///< the trial that is called "refit"; 0: none is
  Index part = 1;              ///< several processes may work on parts of one sweep
  Index parts = 1;

  std::string name(Index trial) const;  ///< "trial-0007"
  RunDirectory trial(Index number) const { return {root / name(number)}; }
  std::filesystem::path rows() const { return root / "rows"; }
  std::filesystem::path row(Index trial) const { return rows() / (name(trial) + ".json"); }
  std::filesystem::path description() const { return root / "sweep.toml"; }
  std::filesystem::path results() const { return root / "sweep.json"; }
  std::filesystem::path stop() const { return root / "stop"; }
  std::filesystem::path lock() const;
  std::filesystem::path claims() const;
  /// A wish to stop that reached one of the groups.
  std::filesystem::path passed_on_stop() const { return claims() / "stop"; }

  /// Makes the directory, or takes the one that a sweep of the same description has begun; nothing is claimed
  /// in it then. Errors: ConfigError if something else is in it, or another sweep; DataError.
  RunLock open(const std::string& text) const;
  /// Takes a trial for this group; false if another group of this process has it. Errors: DataError.
  bool claim(Index trial, Index rung) const;
};

/// The text of sweep.toml: what must stay the same for a sweep to go on.
std::string describe_sweep(const SweepRequest& request, const std::string& config);

}  // namespace lockstep
