// The commands of `trainer`: a table of their functions, and what the flags of some of them ask for. The text
// and the flags of each stand in configs/texts/commands.txt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"

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

// Requests that own flags make, read by their commands. Errors: ConfigError that names the flag, and what was
// expected.

/// Machines on which plan predicts the time of a step.
struct PlannedNodes {
  Index nodes = 0;           ///< --nodes; 0: not asked for
  Index ranks_per_node = 1;  ///< --ranks-per-node
  Index cores = 0;           ///< --cores-per-node; 0: as many as the bench has seen
  double latency = 0;        ///< --latency, in seconds
  double bandwidth = 0;      ///< --bandwidth, in bytes per second
  std::string bench;         ///< --from: what bench wrote with --json; never empty with --nodes
};
PlannedNodes read_planned_nodes(const CommandLine& line);

/// The predictions that are wanted.
struct PredictRequest {
  std::optional<std::string> keep = {};  ///< --keep: columns of the input, as a list
  bool probabilities = false;            ///< --proba
  Index top = 0;                         ///< --top; 0: not given
  std::optional<double> threshold = {};  ///< --threshold
};
PredictRequest read_predict_request(const CommandLine& line);

/// The question about the columns of a model.
struct ImportanceFlags {
  std::string metric;   ///< --metric; empty: that of the run
  Index repeats = 5;    ///< --repeats
  std::string partial;  ///< --partial: a column; empty: all are permuted
  Index points = 20;    ///< --points
};
ImportanceFlags read_importance_flags(const CommandLine& line);

}  // namespace lockstep
