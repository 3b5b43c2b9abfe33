// Files and lines that rank 0 writes and shows while a run goes on, and at its end: metrics.jsonl, the
// progress line, events of TensorBoard, lines of the log and summary.json. Other ranks write none.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/terminal.h"
#include "lockstep/base/timer.h"
#include "lockstep/base/types.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/learning.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/options.h"
#include "lockstep/train/storage/run_directory.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

// metrics.jsonl: one JSON object a line, written as it happens, whole or not at all. The guide
// on output documents the fields.

class MetricsFile final : public Observer, NoCopy {
 public:
  /// Goes on behind the first `keep` bytes of what is there, those of a checkpoint. Where they are not all
  /// there it warns of what is missing, and keeps the whole lines. Errors: DataError if the file cannot be
  /// read or created.
  /// `on_line` is told each line as well, whether or not it can be written.
  explicit MetricsFile(const std::filesystem::path& path, Index keep = 0,
                       std::function<void(const nlohmann::ordered_json&)> on_line = {});
  ~MetricsFile() override;

  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;
  void on_workers(const WorkersReport& report, const Progress& progress) override;
  void on_ranks(const RankTimes& times, const Progress& progress) override;
  Index written_bytes() const override { return bytes_; }
  /// Whether a line was lost, as on a full disk: that is a warning, and training goes on.
  bool failed() const { return failed_; }

 private:
  void write(const nlohmann::ordered_json& json);
  void write(const char* kind, const Progress& progress, const nlohmann::ordered_json& numbers);

  std::filesystem::path path_;
  std::function<void(const nlohmann::ordered_json&)> on_line_;
  Index bytes_ = 0;
  int descriptor_ = -1;
  bool failed_ = false;
};

// The progress that rank 0 shows while training goes on: one line that is redrawn on a terminal, plain lines
// now and then elsewhere.

/// Which evaluations and metrics are shown.
struct ShownProgress {
  bool validation = false;  ///< there is a validation set, and its evaluations stand in the live line
  bool keeps_best = true;   ///< the weights of the best one are the model
  bool every_line = false;  ///< all metrics and evaluations become lines
  Index tokens = 0;         ///< of a sample, where it is a window of tokens; else 0
};

class ProgressLine final : public Observer, NoCopy {
 public:
  /// `whole`: progress at the end of the run. `measure`: the number of evaluations that the live line shows,
  /// the last and, if its weights are kept, the best.
  ProgressLine(ProgressStyle style, const Progress& whole, const ShownProgress& shown, Measure measure);
  ~ProgressLine() override { erase_live_row(); }

  /// Before the first step: the best evaluation of earlier starts.
  void go_on(const RunRecord& earlier);

  void on_step(const Progress& progress, double loss) override;
  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;

 private:
  void redraw(const Progress& progress);
  void print_step(const Progress& progress);
  /// "  validation accuracy 0.9012 (best 0.9050)", or "" before the first evaluation.
  std::string evaluation() const;
  /// "  1,234 samples/s  2 m 05 s left", or "" where they are not known yet. `rate`: with that.
  std::string pace(const Progress& progress, bool rate) const;

  bool live_;
  bool plain_;
  bool every_line_;
  Index tokens_;
  Progress whole_;
  std::optional<Progress> first_;  // the first step that was seen, where a resumed run starts
  double first_seconds_ = 0;       // when it ended, by since_start_
  double evaluating_ = 0;          // seconds since then
  Stopwatch since_start_;
  Stopwatch since_redraw_;
  Stopwatch since_line_;
  double smooth_loss_ = 0;
  bool has_loss_ = false;
  Split split_;  // the set whose evaluations are shown
  bool keeps_best_;
  BestEvaluation best_;
  std::optional<double> latest_;  // its last evaluation
  double line_of_evaluation_;     // when there was the last one, by since_start_
};

/// "[=====>    ]" for 0 <= share <= 1.
std::string bar(double share, int width);

// Event files, which TensorBoard shows: the numbers of metrics.jsonl as scalars, histograms, and the
// config as hyperparameters.

/// One value of the config as the HParams page shows it.
struct HyperParameter {
  std::string key;  ///< "train.lr"
  std::string value;
};

class TensorBoardEvents final : public Observer, NoCopy {
 public:
  /// Writes a new file into `directory`, which is made if it is not there. What other files there have of
  /// steps after `first_step` is shown no more. `tensors`: names of the tensors, for histograms. Errors:
  /// DataError if the file cannot be created.
  TensorBoardEvents(const std::filesystem::path& directory, Index first_step,
                    const std::vector<HyperParameter>& parameters, std::vector<std::string> tensors = {});
  ~TensorBoardEvents() override;

  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;
  void on_workers(const WorkersReport& report, const Progress& progress) override;
  /// Whether an event was lost, as on a full disk: that is a warning, and training goes on.
  bool failed() const { return failed_; }

 private:
  using Scalars = std::vector<std::pair<std::string, double>>;
  void write_scalars(Index step, const Scalars& scalars);
  void write_histograms(Index step, const UpdateStatistics& update);
  void write(const std::string& event);

  std::filesystem::path path_;
  std::vector<std::string> tensors_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
  bool failed_ = false;
};

/// A HistogramProto of kHistogramBins counts. Its least and greatest number, sum and sum of squares are those
/// of the middles of the bins.
std::string histogram_message(std::span<const double> counts);

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

/// The evaluation of the kept weights in one line, how training went, and slow ranks. `tokens`: as
/// ShownProgress has them.
void report_result(const TrainingResult& result, Index tokens = 0);
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
