// Observers of training: metric files, the progress line, the summary. Called on rank 0 only.
#pragma once

#include <string>
#include <vector>

#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/rank_times.h"

namespace lockstep {

class Observer {
 public:
  virtual ~Observer() = default;
  /// After each step: cheap, and often ignored. `loss`: mean over the samples of this step.
  virtual void on_step(const Progress& progress, double loss) = 0;
  /// Every run.log_every steps and at the end.
  virtual void on_train_metrics(const TrainMetrics& metrics) = 0;
  virtual void on_evaluation(const EvalMetrics& metrics) = 0;
  /// Before each evaluation and at the end, with asynchronous workers: since the run began.
  virtual void on_workers(const WorkersReport& report, const Progress& progress) = 0;
  /// Now and then and at the end, with several ranks: where the time of each went since the run was started.
  virtual void on_ranks(const RankTimes& /*times*/, const Progress& /*progress*/) {}
  /// With data.audit, after each epoch (from 1) that was proved to use each sample `times` times.
  virtual void on_audit(Index, Index /*samples*/, Index /*times*/) {}
  /// How long what was written so far is, in bytes.
  virtual Index written_bytes() const { return 0; }
  /// The files of the run of which lines were lost, as on a full disk.
  virtual std::vector<std::string> incomplete_files() const { return {}; }
};

/// Nobody: for the other ranks, and for tests.
class SilentObserver final : public Observer {
 public:
  void on_step(const Progress&, double) override {}
  void on_train_metrics(const TrainMetrics&) override {}
  void on_evaluation(const EvalMetrics&) override {}
  void on_workers(const WorkersReport&, const Progress&) override {}
};

}  // namespace lockstep
