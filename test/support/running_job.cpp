#include "support/running_job.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

// "" for a process that has ended meanwhile.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  try {
    return {std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure&) {
    return "";
  }
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc()) pids.push_back(pid);
  }
  return pids;
}

// Of a process: "NAME=" to the value behind it.
std::optional<std::string> variable(pid_t pid, const std::string& name) {
  std::istringstream environment(text_of(fmt::format("/proc/{}/environ", pid)));
  for (std::string entry; std::getline(environment, entry, '\0');) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.is_regular_file(gone)) names.insert(entry.path().filename());
  }
  return names;
}

bool wait_until(double seconds, const std::function<bool()>& ready) {
  const Stopwatch watch;
  while (!ready()) {
    if (watch.seconds() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

RunningJob::RunningJob(int ranks, const std::string& arguments, const std::string& before)
    : ranks_(ranks),
      mark_(fmt::format("LOCKSTEP_TEST_JOB={}-{}", ::getpid(),
                        std::filesystem::path(directory_ / "").string())),
      memory_before_(shared_memory()) {
  const std::string command =
      fmt::format("{} exec {} {} >{} 2>{} </dev/null", mark_, mpiexec_words(),
                  rank_words(ranks, arguments, before), directory_ / "output", directory_ / "errors");
  launcher_ = ::fork();
  if (launcher_ == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  if (launcher_ < 0) throw std::runtime_error("cannot start " + command);
}

RunningJob::~RunningJob() {
  if (exit_code_ < 0) ::kill(launcher_, SIGTERM);  // so that the launcher clears up behind its ranks
  const bool ended = wait(10) >= 0;
  for (const pid_t pid : members()) ::kill(pid, SIGKILL);
  if (!ended) ::waitpid(launcher_, nullptr, 0);
}

std::vector<pid_t> RunningJob::members() const {
  const std::size_t equals = mark_.find('=');
  std::vector<pid_t> pids = all_pids();
  std::erase_if(pids, [&](pid_t pid) {
    return variable(pid, mark_.substr(0, equals)).value_or("") != mark_.substr(equals + 1);
  });
  return pids;
}

std::vector<pid_t> RunningJob::rank_pids() const {
  std::vector<pid_t> ranks(static_cast<std::size_t>(ranks_), 0);
  std::error_code ignored;
  for (const pid_t pid : members()) {
    const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored);
    if (program.filename() != std::filesystem::path(trainer_path()).filename()) continue;
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {  // of Open MPI, and MPICH
      if (const auto rank = variable(pid, name)) ranks.at(std::stoul(*rank)) = pid;
    }
  }
  return ranks;
}

void RunningJob::kill_launcher() {
  ::kill(launcher_, SIGKILL);
  wait(1);
}

std::vector<pid_t> RunningJob::started_ranks() const {
  std::vector<pid_t> pids;
  wait_until(10, [&] {
    pids = rank_pids();
    return std::ranges::all_of(pids, [](pid_t pid) { return pid > 0; });
  });
  return pids;
}

bool RunningJob::says(const std::string& text, double seconds) const {
  return wait_until(seconds, [&] { return (output() + errors()).find(text) != std::string::npos; });
}

int RunningJob::wait(double seconds) {
  if (exit_code_ >= 0) return exit_code_;
  int status = 0;
  if (!wait_until(seconds, [&] { return ::waitpid(launcher_, &status, WNOHANG) == launcher_; })) return -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

std::string RunningJob::output() const {
  return text_of(directory_ / "output");
}

std::string RunningJob::errors() const {
  return text_of(directory_ / "errors");
}

int RunningJob::processes_left() const {
  wait_until(1, [this] { return members().empty(); });
  return static_cast<int>(members().size());
}

// Other jobs may be running: theirs are in use, or about to be.
std::vector<std::string> RunningJob::memory_left() const {
  std::vector<std::string> left;
  wait_until(1, [&] {
    left.clear();
    std::string maps;
    for (const std::string& name : shared_memory()) {
      if (memory_before_.contains(name)) continue;
      if (maps.empty()) {
        for (const pid_t pid : all_pids()) maps += text_of(fmt::format("/proc/{}/maps", pid));
      }
      if (maps.find("/dev/shm/" + name) == std::string::npos) left.push_back(name);
    }
    return left.empty();
  });
  return left;
}

}  // namespace lockstep::test
