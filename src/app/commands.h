// The subcommands of `trainer`, one file each. Each returns the exit code of the process.
#pragma once

#include <span>
#include <string_view>

#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"

namespace lockstep {

/// *Collective.* Trains; the default.
int train_command(Communicator& comm, const CommandLine& line);
/// *Collective.* Trains with other values of some keys, several trials at a time.
int sweep_command(Communicator& comm, const CommandLine& line);
/// *Collective.* Trains with each of several parts of the training data as validation set.
int cv_command(Communicator& comm, const CommandLine& line);
/// *Collective.* Evaluates the model of a finished run.
int eval_command(Communicator& comm, const CommandLine& line);
/// *Collective.* Shows which columns the model of a finished run needs, or how its predictions follow one.
int importance_command(Communicator& comm, const CommandLine& line);
/// *Collective.* Writes the predictions of the model of a finished run for each record of a file.
int predict_command(Communicator& comm, const CommandLine& line);
/// Writes the model of a finished run for other programs. Needs no launcher.
int export_command(const CommandLine& line);
/// Prints what is in a table, and the [data] section to train on it. Needs no launcher.
int inspect_command(const CommandLine& line);
/// Writes a first config for a data file, and prints what to do with it. Needs no launcher.
int init_command(const CommandLine& line);
/// Prints what differs between runs, and what came of it. Needs no launcher.
int compare_command(const CommandLine& line);
/// Writes a page that shows what runs did. Needs no launcher.
int report_command(const CommandLine& line);
/// Writes the metrics of runs for spreadsheets and statistics. Needs no launcher.
int export_metrics_command(const CommandLine& line);
/// Prints a line for each run. Needs no launcher.
int status_command(const CommandLine& line);
/// Draws runs as they go on, until the user leaves. Needs no launcher.
int watch_command(const CommandLine& line);
/// Summarises the timeline of a run, or writes it for a viewer. Needs no launcher.
int trace_command(const CommandLine& line);
/// Prints the plans for several numbers of ranks. Needs no launcher.
int plan_command(const CommandLine& line);
/// Prints what a step takes on the nodes of plan --nodes. Needs no launcher.
int scale_command(const CommandLine& line);
/// *Collective.* Measures the machine, the model's layers, the exchange and a training step.
int bench_command(Communicator& comm, const CommandLine& line);
/// Prints the usage, or what help there is on a topic. Errors: ConfigError for an unknown topic.
int help_command(const CommandLine& line);
/// Prints configs/REFERENCE.md, the man page or a completion, in the form of --format.
int reference_command(const CommandLine& line);
/// Prints what the program was built from and with.
int version_command(const CommandLine& line);

/// A command and the function that is called for it. Its help and its flags stand in
/// configs/texts/commands.txt.
struct CommandFunction {
  std::string_view name;                                           ///< as in CommandLine::command
  int (*alone)(const CommandLine&) = nullptr;                      ///< of a command that needs no other ranks
  int (*with_ranks)(Communicator&, const CommandLine&) = nullptr;  ///< *Collective*; of the others
  bool trains = false;  ///< can be stopped, and goes on when the reader of its log goes away
};

std::span<const CommandFunction> command_functions();
/// Requires that parse_command_line made `line`.
const CommandFunction& function_of(const CommandLine& line);

}  // namespace lockstep
