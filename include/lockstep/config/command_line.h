// The command line, and with it the way a config comes about: defaults, then the file, then the flags. No MPI
// here: each rank parses the command line that all of them got, rank 0 reads the file and hands out its text.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

/// Machines on which plan predicts the time of a step.
struct PlannedNodes {
  Index nodes = 0;           ///< --nodes; 0: not asked for
  Index ranks_per_node = 1;  ///< --ranks-per-node
  Index cores = 0;           ///< --cores-per-node; 0: as many as the bench has seen
  double latency = 0;        ///< --latency, in seconds
  double bandwidth = 0;      ///< --bandwidth, in bytes per second
  std::string bench;         ///< --from: what bench wrote with --json; never empty with --nodes
};

/// The trials of a sweep, and how they are carried out.
struct SweepRequest {
  std::vector<std::string> grids = {};    ///< each --grid: "train.lr=0.01,0.1"
  std::vector<std::string> randoms = {};  ///< each --random: "train.lr=log(1e-4,1e-1)"
  Index draws = 0;                        ///< --trials; 0 without --random
  Index halving = 0;                      ///< --halving: one in so many goes on at each rung; 0: all do
  Index ranks_per_trial = 1;              ///< --ranks-per-trial
  Index part = 1;                         ///< --part: which of the `parts` parts of the trials is run here
  Index parts = 1;
  ValidationPart folds = {};  ///< folds of cv; its `fold` is that of each trial
  bool refit = false;         ///< --refit
};

/// The predictions that are wanted.
struct PredictRequest {
  std::optional<std::string> keep = {};  ///< --keep: columns of the input, as a list
  bool probabilities = false;            ///< --proba
  Index top = 0;                         ///< --top; 0: not given
  std::optional<double> threshold = {};  ///< --threshold
};

struct CommandLine {
  /// Its name, "" to train; or the flag that asks for a text: "--help", "--help-all" or "--version".
  std::string command;
  std::string config_file;           ///< --config; never empty for train, sweep, cv and plan
  std::vector<Index> plan_np = {1};  ///< --np of plan: world sizes
  PlannedNodes planned;
  SweepRequest sweep;
  PredictRequest predict;
  std::string model;   ///< --model: a run directory; never empty for eval, predict, importance, export
  std::string input;   ///< --input: a data file, or - for standard input; never empty for predict
  std::string output;  ///< --output: see OutputFile; never empty for predict and export
  std::string data;    ///< the file after inspect and init; never empty there
  std::vector<std::string> runs;  ///< the directories after compare, report, export-metrics, status, watch
                                  ///< and trace; never empty there
  std::string task;               ///< --task of init; may be empty
  std::string sort;               ///< --sort of compare; may be empty
  std::string csv;                ///< --csv of compare and importance: see OutputFile; may be empty
  std::string metric;             ///< --metric of importance; empty: that of the run
  Index repeats = 5;              ///< --repeats of importance
  std::string partial;            ///< --partial of importance: a column; empty: all are permuted
  Index points = 20;              ///< --points of importance
  std::string topic;              ///< the word after help, or the command of --help; may be empty
  /// --json of bench, plan, eval, inspect, compare, importance and --version: see OutputFile; may be empty
  std::string json;
  bool once = false;       ///< --once: watch prints its view and ends
  bool overwrite = false;  ///< --overwrite: an output that exists is replaced
  bool allow_nan = false;  ///< --allow-nan of predict: predictions may be no finite numbers
  /// --format: name of an exporter, never empty for export; of predictions, or a reference
  std::string format;
  std::vector<std::string> arguments;  ///< words as given; load_config reads the flags of options from here
  std::set<std::string> without = {};  ///< keys that load_config leaves at their defaults, whoever sets them
};

/// `arguments`: those of main without the program's name. Values of options are checked here already.
/// Errors: ConfigError naming the argument.
CommandLine parse_command_line(const std::vector<std::string>& arguments, const KnownNames& names);

/// A config file's text and its name in errors; both empty for none.
struct ConfigText {
  std::string file;
  std::string text;
};

/// Rank 0 only. Errors: ConfigError with the system's reason, and the nearest name in that directory.
ConfigText read_config_file(const std::string& file);

struct LoadedConfig {
  Config config;
  std::set<std::string> given;    ///< keys set by the file or by a flag
  std::set<std::string> flagged;  ///< keys of them that a flag sets
};

/// Defaults, overridden by the file, overridden by the flags.
/// Errors: ConfigError with one line "FILE:LINE: ..." for each thing that is wrong in the file.
LoadedConfig load_config(const CommandLine& line, const ConfigText& file, const KnownNames& names);

}  // namespace lockstep
