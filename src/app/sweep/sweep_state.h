// The state that sweep and cv have in common: the trials, their directory, and their rows so far.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "sweep_directory.h"
#include "trial_row.h"

namespace lockstep {

class SweepState {
 public:
  /// The settings of each trial, from the config that all share.
  using ListTrials = std::function<std::vector<std::vector<Setting>>(const Config&)>;

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

  const ConfigText& text() const { return text_; }
  const SweepDirectory& directory() const { return directory_; }
  const Measure& measure() const { return *measure_; }
  /// Rows of all trials, in order.
  std::vector<TrialRow>& rows() { return rows_; }
  const std::vector<TrialRow>& rows() const { return rows_; }
  /// The config of a trial, unchecked.
  LoadedConfig config_of(const TrialRow& row) const;

 private:
  TrialRow known_row(TrialRow row) const;
  void check_view() const;

  Communicator& world_;
  const CommandLine& line_;
  ConfigText text_;
  SweepDirectory directory_;
  RunLock lock_;  // rank 0
  std::optional<Measure> measure_;
  std::vector<TrialRow> rows_;
};

/// The command line of a trial, as if it had been given by itself.
CommandLine line_of_trial(const CommandLine& line, const SweepDirectory& directory, const TrialRow& row);

}  // namespace lockstep
