// The files and lines that rank 0 writes while a run goes on; other ranks write none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/report/live/metrics_file.h"
#include "lockstep/report/live/progress_line.h"
#include "lockstep/report/live/tensorboard.h"
#include "lockstep/train/storage/run_directory.h"
#include "lockstep/train/storage/run_record_file.h"

namespace lockstep {

struct RunOutputSettings {
  RunDirectory directory;
  ProgressStyle progress = {};
  Progress whole;  ///< progress at the end of the run
  EvaluationSchedule evaluations;
  Measure measure;  ///< the number of evaluations that the live line shows
  std::optional<std::vector<HyperParameter>> hyperparameters;  ///< for TensorBoard; nothing: no files for it
  std::vector<std::string> tensors = {};                       ///< names of the weights, in order
  RunRecordFile* record = nullptr;                             ///< null: none is kept
  std::function<std::string(Index)> average = {};  ///< how the weights after a step are averaged; may be ""
};

/// The point at which a start of a run goes on.
struct OutputStart {
  Index step = 0;
  Index metrics_bytes = 0;                   ///< the length of metrics.jsonl then
  std::vector<std::string> incomplete = {};  ///< files of which earlier starts have lost lines
};

class RunOutput final : public Observer {
 public:
  /// Errors: DataError if a file cannot be created.
  RunOutput(RunOutputSettings settings, OutputStart start);

  void on_step(const Progress& progress, double loss) override { line_.on_step(progress, loss); }
  void on_train_metrics(const TrainMetrics& metrics) override {
    metrics_.on_train_metrics(metrics);
    if (events_) events_->on_train_metrics(metrics);
    line_.on_train_metrics(metrics);
  }
  void on_evaluation(const EvalMetrics& metrics) override {
    metrics_.on_evaluation(metrics);
    if (events_) events_->on_evaluation(metrics);
    line_.on_evaluation(metrics);
  }
  void on_workers(const WorkersReport& report, const Progress& progress) override {
    metrics_.on_workers(report, progress);
    if (events_) events_->on_workers(report, progress);
  }
  void on_ranks(const RankTimes& times, const Progress& progress) override {
    metrics_.on_ranks(times, progress);
  }
  void on_audit(Index epoch, Index samples, Index times) override;
  Index written_bytes() const override { return metrics_.written_bytes(); }
  std::vector<std::string> incomplete_files() const override;

 private:
  void record_line(const nlohmann::ordered_json& json);

  RunRecordFile* record_;
  std::function<std::string(Index)> average_;
  MetricsFile metrics_;
  std::optional<TensorBoardEvents> events_;
  ProgressLine line_;
  std::vector<std::string> incomplete_;
};

}  // namespace lockstep
