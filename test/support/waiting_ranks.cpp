#include "support/waiting_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "lockstep/base/file.h"
#include "support/temporary_directory.h"

namespace lockstep::test {
namespace {

// The words of a shell command as support/waiting_trainer.cpp reads them.
std::optional<std::string> split_words(const std::string& arguments) {
  wordexp_t words{};
  if (::wordexp(arguments.c_str(), &words, WRDE_NOCMD) != 0) return std::nullopt;
  std::string text = std::to_string(words.we_wordc) + '\0';
  for (std::size_t i = 0; i < words.we_wordc; ++i) text += std::string(words.we_wordv[i]) + '\0';
  ::wordfree(&words);
  return text;
}

// A pipe with a name: others see its end when the descriptor is closed.
int make_pipe(const std::string& path) {
  const int descriptor = ::mkfifo(path.c_str(), 0600) == 0 ? ::open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) throw std::runtime_error("cannot make " + path);
  return descriptor;
}

class WaitingRanks {
 public:
  explicit WaitingRanks(int ranks) : answers_(make_pipe(directory_ / "answers")) {
    for (int rank = 0; rank < ranks; ++rank)
      commands_.push_back(make_pipe(directory_ / fmt::format("commands-{}", rank)));
    for (const char* name : {"output", "errors"}) write_file_atomically(directory_ / name, "");
    const std::string command = fmt::format("exec {} -n {} {} {} >{} 2>{} </dev/null", mpiexec_words(), ranks,
                                            LOCKSTEP_WAITING_TRAINER, directory_.path().string(),
                                            directory_ / "launcher-output", directory_ / "launcher-errors");
    launcher_ = ::fork();
    if (launcher_ == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    if (launcher_ < 0) throw std::runtime_error("cannot start " + command);
  }
  ~WaitingRanks() {
    for (const int descriptor : commands_) ::close(descriptor);
    ::close(answers_);
    if (launcher_ > 0) ::waitpid(launcher_, nullptr, 0);
  }
  WaitingRanks(const WaitingRanks&) = delete;
  WaitingRanks& operator=(const WaitingRanks&) = delete;

  bool ended() const { return launcher_ < 0; }

  ProcessResult run(const std::string& words) {
    for (const char* name : {"output", "errors"}) std::filesystem::resize_file(directory_ / name, 0);
    for (const int descriptor : commands_) {
      if (::write(descriptor, words.data(), words.size()) != std::ssize(words))
        throw std::runtime_error("cannot send a command to ranks that wait");
    }
    ProcessResult result;
    result.exit_code = wait_for_answers();
    result.output = read_file(directory_ / "output");
    result.errors = read_file(directory_ / "errors");
    if (ended()) {
      result.output += read_file(directory_ / "launcher-output");
      result.errors += read_file(directory_ / "launcher-errors");
    }
    return result;
  }

 private:
  // The first exit code of a rank that is not 0; that of the launcher if it ends.
  int wait_for_answers() {
    int exit_code = 0;
    for (std::size_t answered = 0; answered < commands_.size();) {
      pollfd answers{.fd = answers_, .events = POLLIN, .revents = 0};
      if (::poll(&answers, 1, 20) > 0) {
        unsigned char answer[2];
        if (::read(answers_, answer, sizeof answer) != sizeof answer)
          throw std::runtime_error("a bad answer");
        if (exit_code == 0) exit_code = answer[1];
        ++answered;
      } else if (int status = 0; ::waitpid(launcher_, &status, WNOHANG) == launcher_) {
        launcher_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
    }
    return exit_code;
  }

  TemporaryDirectory directory_;
  int answers_;
  std::vector<int> commands_;
  pid_t launcher_ = -1;
};

}  // namespace

std::optional<ProcessResult> run_on_waiting_ranks(int ranks, const std::string& arguments) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<WaitingRanks>> all;
  const std::optional<std::string> words = split_words(arguments);
  if (!words) return std::nullopt;
  const std::lock_guard lock(mutex);
  std::unique_ptr<WaitingRanks>& waiting = all[ranks];
  if (!waiting) waiting = std::make_unique<WaitingRanks>(ranks);
  ProcessResult result = waiting->run(*words);
  result.command = fmt::format("on {} ranks: trainer {}", ranks, arguments);
  if (waiting->ended()) waiting.reset();
  return result;
}

}  // namespace lockstep::test
