// The files and lines that rank 0 writes while a run goes on; other ranks write none.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/report/live/metrics_file.h"
#include "lockstep/report/live/progress_line.h"
#include "lockstep/report/live/tensorboard.h"
#include "lockstep/train/evaluation/learning.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/storage/run_directory.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

struct RunOutputSettings {
  RunDirectory directory;
  ProgressStyle progress = {};
  Progress whole;  ///< progress at the end of the run
  ShownProgress shown;
  Measure measure;                                             ///< the measure that decides
  std::optional<std::vector<HyperParameter>> hyperparameters;  ///< for TensorBoard; nothing: no files for it
  std::vector<std::string> tensors = {};                       ///< names of the weights, in order
  RunRecordFile* record = nullptr;                             ///< null: none is kept
  StepLosses* losses = nullptr;                                ///< gets those of the steps; may be null
  std::function<std::string(Index)> average = {};  ///< how the weights after a step are averaged; may be ""
};

/// The point at which a start of a run goes on.
struct OutputStart {
  Progress progress = {};
  Index metrics_bytes = 0;                   ///< the length of metrics.jsonl then
  std::vector<std::string> incomplete = {};  ///< files of which earlier starts have lost lines
};

class RunOutput final : public Observer {
 public:
  /// Errors: DataError if a file cannot be created.
  RunOutput(RunOutputSettings settings, OutputStart start);

  void on_step(const Progress& progress, double loss) override {
    progress_ = progress;
    line_.on_step(progress, loss);
    if (losses_ != nullptr) losses_->add(loss);
  }
  void on_train_metrics(const TrainMetrics& metrics) override {
    for (Observer* part : parts_) part->on_train_metrics(metrics);
  }
  void on_evaluation(const EvalMetrics& metrics) override {
    for (Observer* part : parts_) part->on_evaluation(metrics);
  }
  void on_workers(const WorkersReport& report, const Progress& progress) override {
    for (Observer* part : parts_) part->on_workers(report, progress);
  }
  void on_ranks(const RankTimes& times, const Progress& progress) override {
    metrics_.on_ranks(times, progress);
  }
  void on_audit(Index epoch, Index samples, Index times) override;
  Progress progress() const override { return progress_; }
  Index written_bytes() const override { return metrics_.written_bytes(); }
  std::vector<std::string> incomplete_files() const override;

 private:
  void record_line(const nlohmann::ordered_json& json);

  RunRecordFile* record_;
  StepLosses* losses_;
  std::function<std::string(Index)> average_;
  MetricsFile metrics_;
  std::optional<TensorBoardEvents> events_;
  ProgressLine line_;
  std::vector<Observer*> parts_;  // the three above, in this order
  std::vector<std::string> incomplete_;
  Progress progress_;
};

// The end of a training run: its lines in the log, and summary.json.

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

/// The evaluation of the kept weights in one line, how training went, and slow ranks.
void report_result(const TrainingResult& result);
/// Rank 0: which weights the model has, and why the run ended early, if it did. `positive`: the class that is
/// yes.
void report_kept(const TrainingResult& result, const std::string& positive);
/// Rank 0: the probability from which on the model says yes, which is the class `positive`.
void report_threshold(const std::optional<ChosenThreshold>& threshold, const std::string& positive);
/// The temperature of a calibrated model, and what it does.
void report_calibration(const TrainingResult& result);
/// Names of the files and directories that a complete run has in its directory.
std::vector<std::string> written_files(const RunDirectory& directory);

// Lines of the log on how the work of a run is spread: threads over cores, classes over shards, gradients
// over workers.

/// `cores[rank]`: those that the rank may run on. Names the rank that has the fewest, with the corrected
/// command line; "" if that one has a core for each of its `threads`.
std::string few_cores_warning(std::span<const Index> cores, Index threads);

/// Samples by class, of the classes that occur. (A model may have 10^9 outputs.)
using ClassCounts = std::map<Index, double>;

/// `shards[replica]`: what was counted of its shard. Names a class whose share of a shard is far from its
/// share of all samples, by more than chance explains; "" if there is none.
std::string describe_uneven_shards(std::span<const ClassCounts> shards);

/// How stale the gradients were, or how many were dropped; then a line for each worker, with its samples in
/// multiples of an even share of the run's `samples`.
std::vector<std::string> worker_lines(const WorkersReport& report, Index samples);

}  // namespace lockstep
