// The memory of a sweep or a cross-validation: its directory, a row for each trial, and tables of the rows.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/config/trials.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

// The directory of a sweep: a run directory for each trial, and what is known of the trials.
//
//   sweep.toml        the config that the trials share, and the flags that tell them apart
//   trial-0007/       the run directory of trial 7
//   rows/trial-0007.json    its row: how it ended and what came out
//   sweep.json        all rows, best first
//   data.json         the hashes of the data that trials have been trained with
//   stop              made by a user: all trials save themselves and stop
//   lock, rows/claims/      which process works here, and which trials its groups have taken

struct SweepDirectory {
  std::filesystem::path root;
  std::string word = "trial";  ///< what a trial is called
  Index refit = 0;             ///< the trial that is called "refit"; 0: none is
  Index part = 1;              ///< several processes may work on parts of one sweep
  Index parts = 1;

  std::string name(Index trial) const;  ///< "trial-0007"
  RunDirectory trial(Index number) const { return {root / name(number)}; }
  std::filesystem::path rows() const { return root / "rows"; }
  std::filesystem::path row(Index trial) const { return rows() / (name(trial) + ".json"); }
  std::filesystem::path description() const { return root / "sweep.toml"; }
  std::filesystem::path results() const { return root / "sweep.json"; }
  std::filesystem::path data() const { return root / "data.json"; }
  std::filesystem::path stop() const { return root / "stop"; }
  std::filesystem::path lock() const;
  std::filesystem::path claims() const;
  /// A wish to stop that reached one of the groups.
  std::filesystem::path passed_on_stop() const { return claims() / "stop"; }

  /// Makes the directory, or takes the one that the sweep has begun; nothing is claimed in it then.
  /// `describe` gives its description from the one that is there, or from "". Errors: ConfigError if
  /// something else is in it, or another process works there; DataError; those of `describe`.
  RunLock open(const std::function<std::string(const std::string& before)>& describe) const;
  /// Takes a trial for this group; false if another group of this process has it. Errors: DataError.
  bool claim(Index trial, Index rung) const;
};

/// How far a trial is.
enum class TrialState {
  kWaiting,  ///< nothing is known of it yet
  kStopped,  ///< it goes on from its checkpoint
  kPaused,   ///< it is at a rung
  kDropped,  ///< others were better at a rung
  kFailed,
  kDone,
};

std::string to_string(TrialState state);

/// The validation measure of a run so far.
struct TrialScore {
  double value = 0;  ///< NaN: it is undefined, as the AUC of a set without positives
  Index step = 0;    ///< after which it was found
  double epoch = 0;
  nlohmann::ordered_json evaluation = nullptr;  ///< all measures of that evaluation
};

struct TrialRow {
  Index number = 1;
  std::vector<Setting> settings = {};
  TrialState state = TrialState::kWaiting;
  std::string reason = {};  ///< reason of a failure
  int exit_code = 0;
  bool was_held = false;              ///< another process had its directory when it failed
  std::vector<double> at_rungs = {};  ///< its value at each of them; NaN: none
  std::optional<TrialScore> score = {};
  Index steps = 0;
  double seconds = 0;                     ///< training time over all starts
  nlohmann::ordered_json test = nullptr;  ///< the evaluation of the test set; null: none

  /// The last rung that it has reached; -1 for none.
  Index rung() const { return std::ssize(at_rungs) - 1; }
  bool is_measured() const { return score && std::isfinite(score->value); }
  /// Whether the failure may be over at the next start: a file, a full disk, a rank, a lock.
  bool may_pass() const;
  /// Whether nothing more is to be done for it.
  bool is_over() const { return state == TrialState::kDone || state == TrialState::kFailed; }
};

nlohmann::ordered_json to_json(const TrialRow& row, const std::string& measure);
/// The row that to_json() made. Errors: DataError, or the library's exceptions, if it is none.
TrialRow parse_row(const nlohmann::ordered_json& json);
/// Errors: DataError if the file cannot be read, or is no row.
TrialRow read_row(const std::filesystem::path& file);

/// From metrics.jsonl: the best validation measure so far or, if `keeps_best` is false or it was never
/// defined, the last one.
std::optional<TrialScore> read_score(const RunDirectory& run, const Measure& measure, bool keeps_best);
/// Adds what a finished run says in run.json: steps, seconds, and the evaluations of the weights that it
/// keeps. Errors: DataError.
void add_result(TrialRow& row, const RunDirectory& run, const Measure& measure);

/// Whether row `a` stands before row `b`: the better value first, those without one by their numbers.
bool is_before(const TrialRow& a, const TrialRow& b, const Measure& measure);

/// The table, what failed and why, the best trial, and how to go on with it.
std::string sweep_table(std::span<const TrialRow> rows, const Measure& measure,
                        const SweepDirectory& directory);
/// sweep.json.
nlohmann::ordered_json sweep_json(std::span<const TrialRow> rows, const Measure& measure,
                                  const SweepDirectory& directory);

/// The folds of a cross-validation, their mean, and their standard deviation (that of a sample: divided by K
/// - 1; of one there is none). A measure that is undefined in some folds has the mean of the others, with
/// their number.
std::string folds_table(std::span<const TrialRow> folds, const Measure& measure,
                        const SweepDirectory& directory);
/// sweep.json of a cross-validation.
nlohmann::ordered_json folds_json(std::span<const TrialRow> rows, const Measure& measure,
                                  const SweepDirectory& directory);

}  // namespace lockstep
