// One rank of a trainer that runs one command after another, as support/waiting_ranks.h says.
//
// Each rank waits in a read of its own pipe, so that it takes no time of a core meanwhile. A command is the
// length of its text, and its words, each with a zero behind it. What the rank answers is its number and the
// exit code, a byte each.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "app/program.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/comm/session.h"

namespace lockstep::test {
namespace {

int open_or_throw(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  error_if(descriptor < 0, "cannot open '{}'", path);
  return descriptor;
}

bool read_whole(int descriptor, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t found = ::read(descriptor, bytes, count);
    if (found <= 0) return false;
    bytes += found;
    count -= static_cast<std::size_t>(found);
  }
  return true;
}

// False: there are no more.
bool read_command(int descriptor, std::vector<std::string>& words) {
  std::uint32_t length = 0;
  if (!read_whole(descriptor, reinterpret_cast<char*>(&length), sizeof length)) return false;
  std::string text(length, '\0');
  if (!read_whole(descriptor, text.data(), length)) return false;
  words.clear();
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1) {
    words.emplace_back(text.c_str() + begin);
  }
  return true;
}

int run_commands(Communicator& comm, const std::string& directory) {
  const int commands = open_or_throw(directory + "/commands-" + std::to_string(comm.rank()), O_RDONLY);
  const int answers = open_or_throw(directory + "/answers", O_WRONLY);
  ::dup2(open_or_throw(directory + "/output", O_WRONLY | O_APPEND), STDOUT_FILENO);
  ::dup2(open_or_throw(directory + "/errors", O_WRONLY | O_APPEND), STDERR_FILENO);
  std::vector<std::string> words;
  while (read_command(commands, words)) {
    const auto session = [&](const std::function<int(Communicator&)>& body, ThreadLevel) {
      return run_in_session(*comm.split(0, comm.rank()), body);
    };
    const int exit_code = run_program(words, session);
    std::cout.flush();
    std::fflush(nullptr);
    const char answer[] = {static_cast<char>(comm.rank()), static_cast<char>(exit_code)};
    error_if(::write(answers, answer, sizeof answer) != sizeof answer, "cannot answer");
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::test

// Signals are blocked before MPI makes threads, as in a trainer that trains.
int main(int, char** argv) {
  using namespace lockstep;
  note_stop_signals();
  std::signal(SIGPIPE, SIG_IGN);
  return run_session([&](Communicator& comm) { return test::run_commands(comm, argv[1]); },
                     ThreadLevel::kMultiple);
}
