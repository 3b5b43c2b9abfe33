// run.json: what a run is, how far it is and how it ended. Rank 0 of the run writes it; everybody else reads
// a run from here, and from the lines of metrics.jsonl.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// Numbers of one evaluation by their names in metrics.jsonl, in that order: "loss", "accuracy", "auc".
using MetricValues = std::vector<std::pair<std::string, double>>;

std::optional<double> find_metric(const MetricValues& values, const std::string& name);

enum class RunState {
  kRunning,
  kStopped,       ///< saved before its end; the same command goes on
  kStoppedEarly,  ///< complete, by train.early_stopping
  kDone,
  kFailed,
  // A reader finds these in place of "running", or of a record.
  kKilled,  ///< its process is gone from this host
  kSilent,  ///< no sign of life from another host
  kDamaged,
};
std::string to_string(RunState state);

/// A sign of life of the process that trains.
struct Heartbeat {
  std::string time = {};  ///< UTC, as in "2026-11-27T17:03:12Z"
  std::string host = {};
  Index pid = 0;

  static Heartbeat now();
  /// How long ago it was; 0 if the time cannot be read.
  double seconds_ago() const;
};

/// The longest time between two heartbeats, in seconds, and how many may be missed.
inline constexpr double kHeartbeatSeconds = 60;
inline constexpr int kMissedHeartbeats = 3;

/// How the run was started.
struct Launch {
  std::string command = {};            ///< of rank 0, without mpirun
  std::string time = {};               ///< as in Heartbeat
  std::vector<Index> resumed_at = {};  ///< steps of the checkpoints that later starts went on from
  Index replicas = 0;
  Index threads = 0;  ///< of each rank
  std::string precision = {};
  std::string placement = {};           ///< batch job and binding to cores
  std::string cpu = {};                 ///< of rank 0, as the system calls it
  std::vector<std::string> hosts = {};  ///< of each rank
  std::vector<std::string> cores = {};  ///< of each rank, as taskset writes them
  std::string algorithm = {};           ///< of the exchange

  /// "2 ranks on 1 host, 4 replicas, ...".
  std::string describe() const;
};

/// Numbers of the plan, see RunPlan, and its text.
struct PlanRecord {
  Index ranks = 0;
  Index servers = 0;  ///< of these ranks
  Index rows = 0;     ///< of the training set
  Index parameters = 0;
  Index steps = 0;
  Index samples = 0;
  double epochs = 0;
  Index global_batch = 0;
  Index epoch_samples = 0;
  double times_each_seen = 0;
  std::vector<std::vector<std::string>> table = {};  ///< label and value
  std::vector<std::string> sentences = {};           ///< what a step and an epoch are, ...
  std::vector<std::vector<std::string>> model = {};  ///< a head, then a row for each layer
  /// A head, then a row for each stage; empty where the model is not divided.
  std::vector<std::vector<std::string>> stages = {};
};

/// An evaluation of a set.
struct EvaluationFigures {
  Index step = 0;  ///< of the weights
  double epoch = 0;
  std::string weights = {};  ///< "last", "best", or the average that they are
  MetricValues values = {};
};

/// The measure that decides, at the step whose weights are kept, or else when it was last made.
struct DecidingFigure {
  std::string split = {};    ///< "validation", else "test", else "train"
  std::string measure = {};  ///< "auc"
  double value = 0;
  Index step = 0;
};

/// The weights of model.safetensors; before the end those that it would have now.
struct KeptWeights {
  bool best = false;  ///< those of the best evaluation; else the last ones
  Index step = 0;
  std::string average = {};  ///< how they are averaged; "" if they are not

  /// "best, uniform average": the weights of an evaluation that was made of them.
  std::string describe() const;
};

struct RunRecord {
  std::string version = {};  ///< of the program
  std::string commit = {};
  std::string config = {};               ///< digest of what decides the result
  std::set<std::string> idle_keys = {};  ///< keys of the config that have no effect beside the others
  RunState state = RunState::kRunning;
  std::string reason = {};  ///< "" for one that is done
  std::optional<Index> exit_code = {};
  Heartbeat heartbeat = {};
  Launch launch = {};
  PlanRecord plan = {};
  std::string measure = "loss";  ///< train.early_stopping_metric
  bool keeps_best = true;        ///< train.keep
  /// The label of whose scaled numbers the loss is, while other measures are in its own units: "price: log";
  /// "": none is scaled.
  std::string scaled_label = {};
  std::string positive = {};  ///< the class that precision, f1 and such are about; "": there are none
  Progress progress = {};
  /// Training time so far, without evaluations and checkpoints; what came after the last line of training
  /// counts at the rate of that line.
  double seconds = 0;
  /// The result: of each set the evaluation of the weights that are kept, at the end with their temperature.
  std::map<std::string, EvaluationFigures> figures = {};
  std::map<std::string, EvaluationFigures> last = {};   ///< the last one of each set that was evaluated
  std::map<std::string, DecidingFigure> deciding = {};  ///< of each set, and of the training loss
  /// By set of windows: json_of_errors(), at the end with the kept weights; null without such sets.
  nlohmann::ordered_json forecasts = nullptr;
  /// By set the figures of its notes; weights of classes, rows of each rank, the last audit of an epoch.
  nlohmann::ordered_json data = nullptr;
  KeptWeights kept = {};
  std::vector<std::string> warnings = {};  ///< the first warnings of rank 0
  Index more_warnings = 0;
  std::vector<std::string> files = {};      ///< what a complete run has written
  nlohmann::ordered_json result = nullptr;  ///< what summary.json has; null before the end

  /// Whether it says all that there is to say of the run, and no line of metrics.jsonl is ahead of it.
  bool has_ended() const { return is_complete() || exit_code || !result.is_null(); }
  bool is_complete() const { return state == RunState::kDone || state == RunState::kStoppedEarly; }
  /// The figure of the validation set, else of the test set, else of the training loss; null before there is
  /// any.
  const DecidingFigure* decides() const;
  /// How far the run is, where that is further than its last line says.
  void add_progress(const Progress& progress);
  /// A line of metrics.jsonl of kind "train", and one of an evaluation.
  void add_training(const Progress& progress, double loss, double rate);
  /// `average`: how its weights were averaged.
  void add_evaluation(const std::string& split, const Progress& progress, MetricValues values,
                      const std::string& average = "");

  /// Training up to its last line in metrics.jsonl, from which add_progress() counts on; not in the file.
  struct TimedPart {
    Index samples = 0;
    double seconds = 0;
    double samples_per_second = 0;  ///< of that line
  };
  TimedPart timed = {};
};

nlohmann::ordered_json to_json(const PlanRecord& plan);
std::string to_json(const RunRecord& record);
/// Errors: DataError, without the name of the file, if it is none.
RunRecord parse_run_record(const std::string& json);

/// The end of the error of a record that is missing or lacks a field: why, and what to do.
inline constexpr const char* kOtherVersion =
    "the run is of an earlier version of the program, or damaged: train it again";

/// The record of a run; nothing if it has none. A run that goes on is told from one that was killed. Errors:
/// DataError.
std::optional<RunRecord> read_run_record(const RunDirectory& run);

/// Steps of the run that went to its end here and lost no file; nothing if none did. A record that cannot be
/// read proves no end. Errors: CannotOpenError.
std::optional<Index> completed_steps(const RunDirectory& run);
/// Files that a run which went to its end could not write.
std::vector<std::string> lost_files(const RunDirectory& run);

// The writer of run.json, on rank 0 of a run.

/// Keeps the record of a run that goes on, and writes it from a thread of its own: soon after each change, at
/// most once a second, and as a heartbeat. No change waits for a write; the end does. A write that fails is
/// tried again with the next; only that of the end is an error.
class RunRecordFile : NoCopy {
 public:
  /// `directory` gives the present path of the run, nothing if it was deleted. The first record is written
  /// before this returns, if it can be.
  RunRecordFile(RunRecord record, std::function<std::optional<std::filesystem::path>()> directory);
  ~RunRecordFile();

  void change(const std::function<void(RunRecord&)>& change);
  /// Changes and writes the record for the last time, or once more if it is called again; nothing is written
  /// by itself from then on. Errors: DataError.
  void end(const std::filesystem::path& directory, const std::function<void(RunRecord&)>& change);
  bool ended() const { return ended_; }

 private:
  std::string text_now();
  void write_if_possible();
  void keep_alive();

  std::function<std::optional<std::filesystem::path>()> directory_;
  std::mutex writing_;  // taken before mutex_
  std::mutex mutex_;    // of what follows
  RunRecord record_;
  std::size_t warnings_taken_ = 0;
  bool changed_ = false;
  std::atomic<bool> ended_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lockstep
