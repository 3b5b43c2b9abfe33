// The state that sweep and cv have in common: the trials, their directory, and their rows so far.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/train/storage/run_directory.h"
#include "trial_row.h"

namespace lockstep {

// The directory of a sweep: a run directory for each trial, and what is known of the trials.
//
//   sweep.toml        the config that the trials share, and the flags that tell them apart
//   trial-0007/       the run directory of trial 7
//   rows/trial-0007.json    its row: how it ended and what came out
//   sweep.json        all rows, best first
//   stop              made by a user: all trials save themselves and stop
//   lock, rows/claims/      which process works here, and which trials its groups have taken

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

class SweepState {
 public:
  /// The settings of each trial, from the config that all share.
  using ListTrials = std::function<std::vector<std::vector<Setting>>(const Config&, const SweepRequest&)>;

  /// *Collective.* Reads the config, lists the trials, and takes the directory, in which earlier starts may
  /// have left rows. `word`: what a trial is called. `line` must outlive it. Errors: AgreedError.
  SweepState(Communicator& world, const CommandLine& line, const std::string& word, const ListTrials& list);
  /// *Local.* One more trial, called "refit"; its settings may still be unknown.
  void add_refit();

  /// *Collective.* Reads on rank 0 what earlier starts, or the groups, have noted; all ranks have it
  /// afterwards. Errors: AgreedError.
  void read_rows();
  /// *Local.* Writes the row of a trial, on the rank that does so.
  void write_row(const TrialRow& row) const;

  const SweepRequest& request() const { return request_; }
  const ConfigText& text() const { return text_; }
  const SweepDirectory& directory() const { return directory_; }
  const Measure& measure() const { return *measure_; }
  /// Rows of all trials, in order.
  std::vector<TrialRow>& rows() { return rows_; }
  const std::vector<TrialRow>& rows() const { return rows_; }
  /// The config of a trial, unchecked.
  Config config_of(const TrialRow& row) const;

 private:
  TrialRow known_row(TrialRow row) const;
  void check_view() const;

  Communicator& world_;
  const CommandLine& line_;
  SweepRequest request_;
  ConfigText text_;
  SweepDirectory directory_;
  RunLock lock_;  // rank 0
  std::optional<Measure> measure_;
  std::vector<TrialRow> rows_;
};

/// The command line of a trial, as if it had been given by itself.
CommandLine line_of_trial(const CommandLine& line, const SweepDirectory& directory, const TrialRow& row);

}  // namespace lockstep
