// The results that a command line names: what is checked of their names before the work starts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"

namespace lockstep {

/// Whether a result goes to standard output, which the log must then not use.
bool writes_to_standard_output(const CommandLine& line);

/// The files that the command line names to be read; directories and lists as the files in them. Errors:
/// DataError if one is missing.
std::vector<std::string> files_read(const CommandLine& line);
/// files_read() of the command line, and the files that the config names.
std::vector<std::string> files_read(const CommandLine& line, const Config& config);

/// --output or --json, whichever is given; see check_output(). `inputs`: of files_read(). On the rank that
/// writes.
void check_outputs(const CommandLine& line, const std::vector<std::string>& inputs);

/// The schema of a table that stands beside an exported model.
std::string schema_beside(const std::string& output);

/// Prints a report that people read: to standard error if standard output gets the same for programs.
void print_report(const CommandLine& line, const std::string& text);

}  // namespace lockstep
