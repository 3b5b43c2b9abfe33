// The end of a training run: its lines in the log, and summary.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/training_result.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// The end of a run, for its summary.
struct RunEnd {
  const TrainingResult& result;
  std::string algorithm;
  std::string config;              ///< see config_digest()
  std::vector<std::string> hosts;  ///< names of the hosts of the ranks
  std::optional<ChosenThreshold> threshold;
  std::vector<std::string> lost;  ///< names of what could not be written
};

/// The content of summary.json.
nlohmann::ordered_json summary_json(const RunEnd& end);

/// The last evaluation in one line, how training went, and slow ranks.
void report_result(const TrainingResult& result);
/// Rank 0: which weights the model has, and why the run ended early, if it did.
void report_kept(const TrainingResult& result);
/// Rank 0: the probability from which on the model says yes.
void report_threshold(const std::optional<ChosenThreshold>& threshold);
/// The temperature of a calibrated model, and what it does.
void report_calibration(const TrainingResult& result);
/// Names of the files and directories that a complete run has in its directory.
std::vector<std::string> written_files(const RunDirectory& directory);

}  // namespace lockstep
