// The reports of a training run: at its start, at its end, and in summary.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/records.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/trainer.h"
#include "lockstep/train/storage/run_directory.h"
#include "rank_placement.h"

namespace lockstep {

/// Logs the ranks, their placement and the plan.
void announce(Communicator& comm, const Config& config, const RunPlan& plan, const RankPlacement& placement);

/// *Collective.* One line for each rank: what it holds.
void report_loaded(Communicator& comm, const RunPlan& plan, const Records& train);

/// How gradients are exchanged, where that was chosen.
void report_algorithm(const std::string& algorithm, const DistOptions& distribute);

/// The end of a run, for its summary.
struct RunEnd {
  const TrainingResult& result;
  std::string algorithm;
  std::optional<ChosenThreshold> threshold;
  std::vector<std::string> lost;  ///< names of what could not be written
};

/// Errors: DataError.
void write_summary(const RunDirectory& directory, const RunEnd& end);

/// The last evaluation, with its tables, and how training went.
void report_result(const TrainingResult& result);
/// Rank 0: which weights the model has, and why the run ended early, if it did.
void report_kept(const TrainingResult& result);
/// Rank 0: the probability from which on the model says yes.
void report_threshold(const std::optional<ChosenThreshold>& threshold);
/// The temperature of a calibrated model, and what it does.
void report_calibration(const TrainingResult& result);
/// The files that a complete run has in its directory.
void report_written(const RunDirectory& directory);

}  // namespace lockstep
