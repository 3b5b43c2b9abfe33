// Runs the real executable, alone or under mpiexec, and says how it ended.
#pragma once

#include "support/common.h"

#include <nlohmann/json_fwd.hpp>
#include <source_location>

namespace lockstep::test {

struct ProcessResult {
  int exit_code = 0;
  std::string output;  ///< standard output
  std::string errors;  ///< standard error
  std::string command = {};
};

/// Runs a shell command.
ProcessResult run_command(const std::string& command);

/// trainer ARGUMENTS, without a launcher.
ProcessResult run_trainer(const std::string& arguments);

/// The same on so many ranks, which stay for the next command (support/waiting_ranks.h); one is a new
/// process.
ProcessResult run_trainer(int ranks, const std::string& arguments);

/// mpiexec -n RANKS trainer ARGUMENTS, for what a start, a launcher or an environment does.
ProcessResult launch_trainer(int ranks, const std::string& arguments);

/// Expects that it has ended with that exit code, and shows its command and what it wrote if it has not.
ProcessResult ended_with(ProcessResult result, int exit_code,
                         const std::source_location& place = std::source_location::current());
ProcessResult succeeded(ProcessResult result,
                        const std::source_location& place = std::source_location::current());
ProcessResult succeed(const std::string& arguments,
                      const std::source_location& place = std::source_location::current());
ProcessResult succeed(int ranks, const std::string& arguments,
                      const std::source_location& place = std::source_location::current());
/// And that the errors, one of which is called so (none, if it was stopped), have these parts.
void expect_failed(ProcessResult result, int exit_code, const std::vector<std::string>& parts = {},
                   const std::source_location& place = std::source_location::current());

/// The numbers of a command that ended well and wrote JSON to standard output.
nlohmann::json json_of(const ProcessResult& result);

/// `trainer eval ARGUMENTS`: an object for each set, without the seconds that it took.
nlohmann::json evaluate(int ranks, const std::string& arguments);

/// The words that start the trainer on `ranks` ranks. `before`: what is to start it, if it does not start by
/// itself.
std::string mpiexec_words();
std::string rank_words(int ranks, const std::string& arguments, const std::string& before = "");

/// mpiexec with a shell command for each rank. They are not joined with ':', on which the mpirun of Open MPI
/// 5.0.7 crashes.
std::string mpiexec_of(const std::vector<std::string>& commands);

/// Path of the executable.
std::string trainer_path();

/// How often `part` occurs in `text`.
int count_of(const std::string& text, const std::string& part);

}  // namespace lockstep::test
