#include "support/trainer_process.h"

#include <sys/wait.h>

#include <regex>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/waiting_ranks.h"

namespace lockstep::test {

ProcessResult run_command(const std::string& command) {
  const TemporaryDirectory directory;
  const std::string output = directory / "output";
  const std::string errors = directory / "errors";
  const int status = std::system(("( " + command + " ) >" + output + " 2>" + errors + " </dev/null").c_str());
  if (status == -1) throw std::runtime_error("cannot run " + command);
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {exit_code, read_file(output), read_file(errors), command};
}

std::string trainer_path() {
  return LOCKSTEP_TRAINER;
}

std::string mpiexec_words() {
  return LOCKSTEP_MPIEXEC;
}

std::string rank_words(int ranks, const std::string& arguments, const std::string& before) {
  return "-n " + std::to_string(ranks) + " " + before + " " + trainer_path() + " " + arguments;
}

std::string mpiexec_of(const std::vector<std::string>& commands) {
  std::string choice;
  for (std::size_t rank = 0; rank < commands.size(); ++rank)
    choice += std::to_string(rank) + ") " + commands[rank] + ";; ";
  choice = "case ${OMPI_COMM_WORLD_RANK-$PMI_RANK} in " + choice + "esac";
  return mpiexec_words() + " -n " + std::to_string(commands.size()) + " sh -c '" +
         std::regex_replace(choice, std::regex("'"), R"('\'')") + "'";
}

ProcessResult run_trainer(const std::string& arguments) {
  return run_command(trainer_path() + " " + arguments);
}

ProcessResult run_trainer(int ranks, const std::string& arguments) {
  if (ranks == 1) return run_trainer(arguments);
  if (const auto result = run_on_waiting_ranks(ranks, arguments)) return *result;
  return launch_trainer(ranks, arguments);
}

ProcessResult launch_trainer(int ranks, const std::string& arguments) {
  return run_command(mpiexec_words() + " " + rank_words(ranks, arguments));
}

ProcessResult ended_with(ProcessResult result, int exit_code, const std::source_location& place) {
  if (result.exit_code != exit_code) {
    ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line()))
        << result.command << "\nended with " << result.exit_code << " instead of " << exit_code << ":\n"
        << result.errors << result.output;
  }
  return result;
}

ProcessResult succeeded(ProcessResult result, const std::source_location& place) {
  return ended_with(std::move(result), 0, place);
}

ProcessResult succeed(const std::string& arguments, const std::source_location& place) {
  return succeeded(run_trainer(arguments), place);
}

ProcessResult succeed(int ranks, const std::string& arguments, const std::source_location& place) {
  return succeeded(run_trainer(ranks, arguments), place);
}

void expect_failed(ProcessResult result, int exit_code, const std::vector<std::string>& parts,
                   const std::source_location& place) {
  const testing::ScopedTrace trace(place.file_name(), static_cast<int>(place.line()), result.command);
  const ProcessResult failed = ended_with(std::move(result), exit_code, place);
  EXPECT_EQ(count_of(failed.errors, "error: "), exit_code == kExitStopped ? 0 : 1) << failed.errors;
  expect_parts(failed.errors, parts);
}

nlohmann::json json_of(const ProcessResult& result) {
  succeeded(result);
  return result.exit_code == 0 ? parse_json<nlohmann::json>(result.output) : nlohmann::json();
}

nlohmann::json evaluate(int ranks, const std::string& arguments) {
  nlohmann::json sets = json_of(run_trainer(ranks, "eval " + arguments + " --json -"));
  for (nlohmann::json& set : sets) set.erase("seconds");
  return sets;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

}  // namespace lockstep::test
