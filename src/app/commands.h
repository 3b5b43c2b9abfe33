// The commands of `trainer`: a table of their functions, and what the flags of some of them ask for. The text
// and the flags of each stand in configs/texts/commands.txt.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {

/// Each function returns the exit code of the process.
struct CommandFunction {
  std::string_view name;                                           ///< as in CommandLine::command
  int (*alone)(const CommandLine&) = nullptr;                      ///< of a command that needs no other ranks
  int (*with_ranks)(Communicator&, const CommandLine&) = nullptr;  ///< *Collective*; of the others
  bool trains = false;  ///< can be stopped, and goes on when the reader of its log goes away
};

std::span<const CommandFunction> command_functions();
/// Requires that parse_command_line made `line`.
const CommandFunction& function_of(const CommandLine& line);

// A training run as a function: what `trainer --config` does, on any communicator.

/// The data set of one kind that a run reads: "training", "validation", "test".
struct RunData {
  std::string kind;
  std::string name;
  std::vector<std::string> files;  ///< empty: it is computed
  bool whole = true;               ///< it is loaded, and not streamed
};

/// The wishes of a sweep for one of its runs; they change nothing that the run learns.
struct RunRequest {
  std::vector<std::filesystem::path> stop_files = {};  ///< beside the run's own
  double seconds_gone = 0;  ///< seconds of run.time_limit that are over when the run begins
  /// The run pauses after the first evaluation at or after this share of its steps; 1: it goes to its end.
  double pause_share = 1;
  /// *Collective.* Looks at the data once they are open. Errors: AgreedError.
  std::function<void(const std::vector<RunData>&)> look_at = {};
};

struct RunOutcome {
  int exit_code = 0;    ///< 0, or kExitStopped
  bool paused = false;  ///< it stopped at pause_share
};

/// *Collective over `comm`.* Trains in run.dir, or goes on there. Errors: AgreedError.
RunOutcome train_run(Communicator& comm, const CommandLine& line, const ConfigText& text,
                     const RunRequest& request = {});

// Requests that own flags make, read by their commands. Errors: ConfigError that names the flag, and what was
// expected.

/// The predictions that are wanted.
struct PredictRequest {
  std::string path = {};                 ///< --output
  std::string format = {};               ///< --format; "": that of the path
  std::optional<std::string> keep = {};  ///< --keep: columns of the input, as a list
  PredictionView view = {};              ///< --proba, --top, --threshold
  /// Rows are numbered as those of the input: also records that cannot be read have one, and padding has
  /// none. Else each row of Prediction has a line.
  bool as_input = true;
};
PredictRequest read_predict_request(const CommandLine& line);

/// The flags of `trainer importance`.
struct ImportanceFlags {
  std::string metric;   ///< --metric; empty: that of the run
  Index repeats = 5;    ///< --repeats
  std::string partial;  ///< --partial: a column; empty: all are permuted
  Index points = 20;    ///< --points
};
ImportanceFlags read_importance_flags(const CommandLine& line);

}  // namespace lockstep
