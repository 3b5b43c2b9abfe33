// The trials that sweep and cv carry out: what they have in common, their rows so far, and the groups of
// ranks that train them, one trial after the other, as each group becomes free.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "sweep_description.h"
#include "trial_rows.h"

namespace lockstep {

/// How far the trials are to go before they are compared.
struct Rung {
  Index number = 0;
  double share = 1;  ///< share of the steps of each run
};

class SweepState {
 public:
  /// Called by all ranks of a group after a trial went to its end, with the communicator of the group and the
  /// command line of the trial. An AgreedError makes the trial a failed one.
  using AfterTrial = std::function<void(Communicator& comm, const CommandLine& line)>;

  /// *Collective.* Reads the config, lists the trials, and takes the directory, in which earlier starts may
  /// have left rows. `word`: what a trial is called. `line` must outlive it. Errors: AgreedError.
  SweepState(Communicator& world, const CommandLine& line, const std::string& word, const ListTrials& list);
  /// *Collective.* One more trial, called "refit". Errors: as read_rows().
  void add_refit(std::vector<Setting> settings);

  /// *Collective.* Takes the trials whose numbers are in `pending` up to the rung; each group writes the rows
  /// of its trials into the directory, and all ranks have them afterwards. Gives whether a wish to stop came
  /// in between. An error that is not a trial's own ends the job.
  bool train(std::span<const Index> pending, const Rung& rung, const AfterTrial& after = {});
  /// *Local.* Writes the row of a trial, on the rank that does so.
  void write_row(const TrialRow& row) const;

  /// Rank 0. Says what is begun, "3 folds", on how many ranks, and where.
  void announce(const std::string& trials) const;
  /// Rank 0, at the end. Writes sweep.json, and the file of --json unless the start was stopped; shows the
  /// table, and forgets what this start has claimed.
  void report(const nlohmann::ordered_json& results, const std::string& table, bool stopped) const;

  /// Rank 0. The exit code of a start that was stopped, which it tells of: `done` of the `count` trials or
  /// folds are done.
  int report_stop(Index done, Index count, const std::string& what) const;

  const SweepRequest& request() const { return request_; }
  const ConfigText& text() const { return text_; }
  const SweepDirectory& directory() const { return directory_; }
  const Measure& measure() const { return *measure_; }
  /// Rows of all trials, in order.
  std::vector<TrialRow>& rows() { return rows_; }
  const std::vector<TrialRow>& rows() const { return rows_; }
  /// The command line of a trial, as if it had been given by itself, and its config, unchecked.
  CommandLine line_of(const TrialRow& row) const;
  Config config_of(const TrialRow& row) const;

 private:
  // *Collective.* Reads on rank 0 what earlier starts, or the groups, have noted; all ranks have it
  // afterwards. Errors: AgreedError.
  void read_rows();
  TrialRow known_row(TrialRow row) const;
  void take_up_again();
  void check_view() const;
  bool leads() const { return group_->rank() == 0; }
  Index take_next(std::span<const Index> pending, const Rung& rung);
  void run_trial(TrialRow row, const Rung& rung, const AfterTrial& after);
  void train(TrialRow& row, const Rung& rung, const AfterTrial& after) const;
  void complete(TrialRow& row, const Rung& rung) const;
  void report_begin(const TrialRow& row) const;
  bool wait_for_all();

  Communicator& world_;
  const CommandLine& line_;
  SweepRequest request_;
  ConfigText text_;
  SweepDirectory directory_;
  RunLock lock_;  // rank 0
  std::optional<Measure> measure_;
  std::vector<TrialRow> rows_;
  std::unique_ptr<Communicator> group_;  // null before the first trial
  Stopwatch since_start_;
  bool stops_ = false;
};

}  // namespace lockstep
