// One rank of a trainer that runs one command after another, as support/waiting_ranks.h says.
//
// Each rank waits in a read of its own pipe, so that it takes no time of a core meanwhile. A command is the
// number of its words, and the words, each with a zero behind it. The answer is the rank and the exit code, a
// byte each.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "app/program.h"
#include "lockstep/base/process.h"
#include "lockstep/comm/session.h"

namespace lockstep::test {
namespace {

// False: there are no more.
bool read_command(std::istream& commands, std::vector<std::string>& words) {
  std::string count;
  if (!std::getline(commands, count, '\0')) return false;
  words.resize(std::stoul(count));
  for (std::string& word : words) std::getline(commands, word, '\0');
  return commands.good();
}

int run_commands(Communicator& comm, const std::string& directory) {
  std::ifstream commands(directory + "/commands-" + std::to_string(comm.rank()));
  std::ofstream answers(directory + "/answers");
  if (std::freopen((directory + "/output").c_str(), "a", stdout) == nullptr ||
      std::freopen((directory + "/errors").c_str(), "a", stderr) == nullptr) {
    return 1;
  }
  std::setvbuf(stderr, nullptr, _IONBF, 0);
  for (std::vector<std::string> words; read_command(commands, words);) {
    const int exit_code = run_program(words, [&](const std::function<int(Communicator&)>& body, ThreadLevel) {
      return run_in_session(*comm.split(0, comm.rank()), body);
    });
    std::cout.flush();
    std::fflush(nullptr);
    answers.put(static_cast<char>(comm.rank())).put(static_cast<char>(exit_code)).flush();
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::test

// Signals are blocked before MPI makes threads, as in a trainer that trains.
int main(int, char** argv) {
  using namespace lockstep;
  const StopSignals signals;
  std::signal(SIGPIPE, SIG_IGN);
  return run_session([&](Communicator& comm) { return test::run_commands(comm, argv[1]); },
                     ThreadLevel::kMultiple);
}
