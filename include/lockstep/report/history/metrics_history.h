// The lines of metrics.jsonl: as JSON, and read back, line by line, or as a whole, in columns. A file that is
// damaged, or whose last line is cut off, gives the lines that are whole.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

// The measurements of a run as JSON values: for metrics.jsonl and summary.json.

/// Adds step, epoch and samples_seen.
void add_progress(nlohmann::ordered_json& json, const Progress& progress);
nlohmann::ordered_json shares_json(const TimeShares& shares);
nlohmann::ordered_json workers_json(const WorkersReport& report);
nlohmann::ordered_json ranks_json(const RankTimes& times);
nlohmann::ordered_json evaluation_json(const EvalMetrics& metrics);

// And as they are read.

/// Counts of samples: row is the true class, column the predicted one.
using ConfusionMatrix = std::vector<std::vector<Index>>;
/// `counts` in rows of as many columns.
ConfusionMatrix as_square(std::span<const Index> counts, Index columns);

/// Whether a number of an evaluation measures the model, not the evaluation.
inline bool is_measure(std::string_view name) {
  return name != "samples" && name != "positions" && name != "top_k" && name != "seconds";
}

struct MetricsLine {
  std::string kind = {};    ///< "train", "evaluation", "workers" or "ranks"
  std::string split = {};   ///< split of an evaluation: "validation" or "test"
  std::string sample = {};  ///< text that the model wrote then
  double step = 0;
  double epoch = 0;
  double samples = 0;
  /// The other numbers, those of objects with the object's name: "loss", "time.data". NaN: recorded as null.
  std::vector<std::pair<std::string, double>> values = {};
  ConfusionMatrix confusion = {};
  std::vector<WorkerRecord> workers = {};
  RankTimes ranks = {};  ///< without hosts

  /// NaN without one of that name.
  double number(std::string_view name) const;
};

/// The line of such an object. Errors: DataError, or the library's exceptions, if it is none.
MetricsLine metrics_line(const nlohmann::ordered_json& json);

/// Calls `on_line` for each whole line in order. Returns what is wrong with the file, one text for each of
/// the first lines that are damaged: "line 12 is no JSON", "the last line is cut off"; nothing for a file
/// that is missing. Errors: DataError if the file cannot be read.
std::vector<std::string> read_metrics_lines(const std::filesystem::path& file,
                                            const std::function<void(const MetricsLine&)>& on_line);

/// Adds a training line or an evaluation to a record; others tell nothing that it has. `average`: how the
/// weights after a step are averaged, see KeptWeights.
void add_line(RunRecord& record, const MetricsLine& line, const std::function<std::string(Index)>& average);

/// An evaluation of the weights that are kept.
EvaluationFigures figures_of(const MetricsLine& evaluation, const KeptWeights& kept);

/// Lines of one kind as columns, which are equally long.
struct MetricsTable {
  struct Column {
    std::string name;
    std::vector<double> values;  ///< NaN: not finite, or not in that line
  };
  std::vector<double> steps = {};
  std::vector<double> samples = {};
  std::vector<double> seconds = {};  ///< training time so far, without evaluations and checkpoints
  std::vector<Column> columns = {};

  std::size_t rows() const { return steps.size(); }
  const Column* find(const std::string& name) const;
  void add(const MetricsLine& line);
};

struct EvaluationHistory {
  std::string split = {};
  MetricsTable table = {};
  ConfusionMatrix confusion = {};  ///< matrix of the kept step, else the last one; may be empty
  double confusion_step = 0;
};

/// A text that the model wrote after a step.
struct WrittenSample {
  double step = 0;
  std::string text = {};
};

struct MetricsHistory {
  MetricsTable train = {};
  std::vector<EvaluationHistory> evaluations = {};  ///< one for each split
  std::vector<WorkerRecord> workers = {};           ///< from the last line of kind "workers"
  RankTimes ranks = {};                             ///< from the last line of kind "ranks"; without hosts
  std::vector<WrittenSample> texts = {};            ///< in the order of the lines
  std::vector<std::string> faults = {};             ///< see read_metrics_lines

  /// Seconds of training at some number of samples.
  double seconds_at(double samples) const;
};

/// `kept_step`: the step of the weights that were kept; -1 if it is unknown. `on_line`: see
/// read_metrics_lines().
MetricsHistory read_metrics_history(const std::filesystem::path& file, double kept_step = -1,
                                    const std::function<void(const MetricsLine&)>& on_line = {});

// The metrics of runs as one table for spreadsheets and statistics: a line for each line of metrics.jsonl, a
// column for each number in any of them.

/// The first columns are run, kind, split, step, epoch and samples_seen. What a line lacks, and what is not
/// finite, is empty; arrays (confusion, workers) are left out. `metrics`: the files; `names`: of the runs, as
/// many. Returns what is wrong with the files, with their names. Errors: DataError.
std::vector<std::string> write_metrics_csv(const std::vector<std::filesystem::path>& metrics,
                                           const std::vector<std::string>& names,
                                           const std::function<void(std::string_view)>& write);

}  // namespace lockstep
