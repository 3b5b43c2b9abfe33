// The end of a training run: its lines in the log, and summary.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/observer.h"
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

// Lines of the log on how the work of a run is spread: threads over cores, classes over shards, gradients
// over workers.

// The warning that a rank has more threads than cores to run on.

/// `cores[rank]`: those that the rank may run on. Names the rank that has the fewest, with the corrected
/// command line; "" if that one has a core for each of its `threads`.
std::string few_cores_warning(std::span<const Index> cores, Index threads);

// The warning that the replicas' shards do not hold about the same share of each class.

/// Samples by class, of the classes that occur. (A model may have 10^9 outputs.)
using ClassCounts = std::map<Index, double>;

/// `shards[replica]`: what was counted of its shard. Names a class whose share of a shard is far from its
/// share of all samples, by more than chance explains; "" if there is none.
std::string describe_uneven_shards(std::span<const ClassCounts> shards);

// Log lines at the end of a run: the fate of the gradients of asynchronous workers.

/// How stale the gradients were, or how many were dropped; then a line for each worker, with its samples in
/// multiples of an even share of the run's `samples`.
std::vector<std::string> worker_lines(const WorkersReport& report, Index samples);

}  // namespace lockstep
