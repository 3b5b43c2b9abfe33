// The results that a command line names: what is checked of their names before the work starts.
#pragma once

#include <string>
#include <vector>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/report/live/run_output.h"
#include "lockstep/train/plan/run_plan.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// Whether a result goes to standard output, which the log must then not use.
bool writes_to_standard_output(const CommandLine& line);

/// The files that the command line names to be read; directories and lists as the files in them. Errors:
/// DataError if that of --input is missing.
std::vector<std::string> files_read(const CommandLine& line);
/// The files of a run but its page, which trainer report writes again.
void add_files_of_run(std::vector<std::string>& files, const RunDirectory& run);
/// files_read() of the command line, and the files that the config names.
std::vector<std::string> files_read(const CommandLine& line, const Config& config);

/// --output, --json and --csv, those that are given; see check_output(). `inputs`: of files_read(). On the
/// rank that writes.
void check_outputs(const CommandLine& line, const std::vector<std::string>& inputs);

/// The schema of a table that stands beside an exported model.
std::string schema_beside(const std::string& output);

/// Prints a report that people read: to standard error if standard output gets the same for programs.
void print_report(const CommandLine& line, const std::string& text);

// The settings of what rank 0 writes while a run goes on, made from the config.

/// Tokens of a sample of text; 0: samples are no text.
Index tokens_of_sample(const Experiment& experiment);
RunOutputSettings output_settings(const Experiment& experiment, const RunPlan& plan);

// Standard input as a file that all ranks can read, again and from any byte on.

/// *Collective.* Reads rank 0's standard input to its end. From then on standard input of each rank is a file
/// with these bytes: a copy in the directory of temporary files (TMPDIR), without a name, so that it is gone
/// with the process. Errors: AgreedError.
void spool_standard_input(Communicator& comm);

}  // namespace lockstep
