// A row of a sweep's table: one trial, and how it went.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/config/trials.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

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
  double value = 0;
  Index step = 0;  ///< after which it was found
  double epoch = 0;
  nlohmann::ordered_json evaluation = nullptr;  ///< all measures of that evaluation
};

struct TrialRow {
  Index number = 1;
  std::vector<Setting> settings = {};
  TrialState state = TrialState::kWaiting;
  std::string reason = {};  ///< reason of a failure
  int exit_code = 0;
  std::vector<double> at_rungs = {};  ///< its value at each of them; NaN: none
  std::optional<TrialScore> score = {};
  Index steps = 0;
  double seconds = 0;                     ///< training time over all starts
  nlohmann::ordered_json test = nullptr;  ///< the evaluation of the test set; null: none

  /// The last rung that it has reached; -1 for none.
  Index rung() const { return std::ssize(at_rungs) - 1; }
  /// Whether nothing more is to be done for it.
  bool is_over() const { return state == TrialState::kDone || state == TrialState::kFailed; }
};

nlohmann::ordered_json to_json(const TrialRow& row, const std::string& measure);
/// The row that to_json() made. Errors: DataError, or the library's exceptions, if it is none.
TrialRow parse_row(const nlohmann::ordered_json& json);
/// Errors: DataError if the file cannot be read, or is no row.
TrialRow read_row(const std::filesystem::path& file);

/// From metrics.jsonl: the best validation measure so far or, if `keeps_best` is false, the last one.
std::optional<TrialScore> read_score(const RunDirectory& run, const Measure& measure, bool keeps_best);
/// Adds what a finished run says: steps and seconds of run.json, and the last evaluation of the test set.
/// Errors: DataError.
void add_result(TrialRow& row, const RunDirectory& run);

/// Whether row `a` stands before row `b`: the better value first, those without one by their numbers.
bool is_before(const TrialRow& a, const TrialRow& b, const Measure& measure);

}  // namespace lockstep
