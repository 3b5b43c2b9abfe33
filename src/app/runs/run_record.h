// A run as its directory tells of it: config.toml, metrics.jsonl, summary.json and log.txt. A run that did
// not come to its end, or whose files are damaged, is a record too, with the reason.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Numbers of one evaluation by their names in metrics.jsonl, in that order: "loss", "accuracy", "auc".
using MetricValues = std::vector<std::pair<std::string, double>>;

std::optional<double> find_metric(const MetricValues& values, const std::string& name);

struct BestValue {
  std::string split = {};    ///< "validation", else "test", else "train"
  std::string measure = {};  ///< "auc"
  double value = 0;
  Index step = 0;
};

enum class RunState { kDone, kUnfinished, kStopped, kFailed, kDamaged };
std::string to_string(RunState state);

struct RunRecord {
  std::string name = {};  ///< the directory as the user may name it
  RunState state = RunState::kUnfinished;
  bool running = false;                            ///< an unfinished one in which a trainer works now
  std::string reason = {};                         ///< "" for one that is done
  std::map<std::string, std::string> config = {};  ///< text of each key; empty if it cannot be read
  Index steps = 0;                                 ///< steps that were made
  double seconds = 0;                              ///< 0: unknown
  /// The best evaluation of the validation set by train.early_stopping_metric; without such a set the last
  /// evaluation, or the last training loss.
  std::optional<BestValue> best = {};
  std::map<std::string, MetricValues> last = {};  ///< evaluation of each split
};

/// Never fails for what is in the directory.
RunRecord read_run(const std::filesystem::path& directory);

/// The runs that the names stand for, in order: the directory of a run, or one with runs in it at any depth,
/// which are sorted by name. Each once. Errors: ConfigError for a name without any.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& names);

}  // namespace lockstep
