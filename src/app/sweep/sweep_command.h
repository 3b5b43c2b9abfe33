// Groups of ranks that carry out the trials of a sweep, one trial after the other, as each group becomes
// free.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/commands.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "sweep_state.h"
#include "trial_row.h"

namespace lockstep {

/// How far the trials are to go before they are compared.
struct Rung {
  Index number = 0;
  double share = 1;  ///< share of the steps of each run
};

class TrialGroups {
 public:
  /// Called by all ranks of a group after a trial went to its end, with the communicator of the group and the
  /// command line of the trial. An AgreedError makes the trial a failed one.
  using AfterTrial = std::function<void(Communicator& comm, const CommandLine& line)>;

  /// *Collective.* Divides the ranks. `line`: of the sweep. All must outlive it.
  TrialGroups(Communicator& world, const CommandLine& line, const SweepState& state, AfterTrial after = {});

  /// *Collective.* Takes the trials whose numbers are in `pending` up to the rung; each group writes the rows
  /// of its trials into the directory. Gives whether a wish to stop came in between. An error that is not a
  /// trial's own ends the job.
  bool run(std::span<const Index> pending, const Rung& rung);

 private:
  bool leads() const { return group_->rank() == 0; }
  bool stop_wanted() const;
  Index take_next(std::span<const Index> pending, const Rung& rung);
  void run_trial(TrialRow row, const Rung& rung);
  void train(TrialRow& row, const Rung& rung);
  void complete(TrialRow& row, const Rung& rung) const;
  void report_begin(const TrialRow& row) const;
  void report_end(const TrialRow& row) const;
  bool wait_for_all();

  Communicator& world_;
  const CommandLine& line_;
  const SweepState& state_;
  const SweepDirectory& directory_;
  const Measure& measure_;
  AfterTrial after_;
  std::unique_ptr<Communicator> group_;
  Stopwatch since_start_;
  bool stops_ = false;
};

/// "train.lr 0.01, train.momentum 0.9"
std::string describe_settings(std::span<const Setting> settings);

}  // namespace lockstep
