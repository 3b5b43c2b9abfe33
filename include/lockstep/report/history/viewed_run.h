// A run as everything that shows runs sees it: its record, its config and its metrics.
#pragma once

#include <concepts>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

struct ConfigLine {
  std::string key;
  std::string value;  ///< "": not given
  std::string by_default;
};

struct ViewedRun {
  std::string name = {};  ///< the directory as the user may name it
  RunRecord record = {};
  std::vector<ConfigLine> config = {};  ///< all keys; empty if it cannot be read
  MetricsHistory metrics = {};
  bool refused = false;  ///< a trial that never began; its config has keys that have no effect, too
  std::set<std::string> settings = {};  ///< of such a trial: the keys that its sweep gave it

  /// "" for a key that is not given.
  std::string value(std::string_view key) const;
  std::string state() const { return to_string(record.state); }
  double steps() const { return static_cast<double>(record.progress.steps); }
  double samples() const { return static_cast<double>(record.progress.samples); }
  /// "fashion" of "runs/fashion": the name in charts.
  std::string short_name() const;
};

/// The directory that the names of several runs have in common, "runs/"; "" for a single run.
std::string common_directory(const std::vector<ViewedRun>& runs);

/// The last characters of a name, which tell runs apart, behind "..." where it has more than `columns`.
std::string end_of(const std::string& name, std::size_t columns);

/// Whether a key says where a run is kept or how it is shown, and nothing about what comes of it.
bool names_no_result(std::string_view key);

/// The keys that decide what comes of a run, or `all`, and whose values differ between the runs whose config
/// can be read, in the order of the options.
std::vector<std::string> differing_keys(const std::vector<const ViewedRun*>& runs, bool all = false);
template <std::derived_from<ViewedRun> Run>
std::vector<std::string> differing_keys(const std::vector<Run>& runs, bool all = false) {
  std::vector<const ViewedRun*> pointers;
  for (const Run& run : runs) pointers.push_back(&run);
  return differing_keys(pointers, all);
}

// The few numbers that say how far a run is and how good it is.

/// The measure that decides, see RunRecord::decides(). Numbers are NaN before there are any.
struct ShownMeasure {
  std::string split = "train";                   ///< "validation", "test" or "train"
  std::string measure = "loss";                  ///< "auc", "loss"
  std::string positive = {};                     ///< see RunRecord
  const MetricsTable::Column* values = nullptr;  ///< of all evaluations; null without any
  double value = 0;                              ///< of the weights that are kept, with their temperature
  double best = 0;                               ///< by which they were chosen; else as `value`
  double best_step = 0;
  double last = 0;  ///< of the last weights that were evaluated

  /// "validation accuracy", "validation f1 of 'fraud'", or "-".
  std::string name() const;
};

/// It refers to `run`.
ShownMeasure shown_measure(const ViewedRun& run);

/// Whether the last evaluation of a set is of other weights than those that are kept.
bool has_other_last(const ViewedRun& run, const std::string& split);

/// The `count` ranks that wait least, for which the others wait, or all if they are fewer; in order.
std::vector<std::size_t> ranks_waiting_least(const std::vector<RankTime>& ranks, std::size_t count);

/// "1,234/4,230 (29 %)".
std::string progress_of(const ViewedRun& run);

/// "data", "compute", "communication", "waiting" or "idle": its share of the time of the whole run once it
/// has ended, before that of the last training line; 0 where that is unknown.
double time_share(const ViewedRun& run, const std::string& name);

/// The time that a run still needs at its pace; NaN for one that does not go on.
double seconds_left(const ViewedRun& run);

// Which points of a long series a chart shows.

/// Indices in ascending order, at most `max_points` (at least 4), of the first and the last value and of the
/// least and the greatest one of each bucket of equally many; all of them where there are no more. A bucket
/// without a number gives its first index, so that the gap stays.
std::vector<std::size_t> kept_points(std::span<const double> values, std::size_t max_points);

// Runs as they are now, for a terminal: as of `trainer watch`.

/// The place that a view has, in characters.
struct ViewSize {
  int columns = 80;
  int rows = 24;
};

/// Lines of at most size.columns characters, at most size.rows of them: of one run its progress, curves, the
/// shares of its time and its last warnings; of several a line each, with a small curve. UTF-8; no escape
/// codes, whatever names there are.
std::vector<std::string> watch_view(const std::vector<ViewedRun>& runs, ViewSize size);

/// The view for programs: a JSON list with an object for each run: its state, how far it is, how fast, its
/// last and best values of the measure that decides, the weights that are kept, its last sign of life.
std::string to_json(const std::vector<ViewedRun>& runs);

/// A curve in Braille, two values in a character: `width` characters wide and `height` high, from top to
/// bottom. Values that are not finite leave a gap.
std::vector<std::string> braille_curve(const std::vector<double>& values, int width, int height);

}  // namespace lockstep
