#include "lockstep/train/storage/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

constexpr const char* kRestart = "run.resume = \"restart\"";

bool is_directory_of(const struct stat& held, const std::filesystem::path& path) {
  struct stat named {};
  return ::stat(path.c_str(), &named) == 0 && named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

// "runs/a" for "runs/a/".
std::filesystem::path without_slash(const std::filesystem::path& root) {
  const std::filesystem::path plain = root.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

std::filesystem::path numbered(const std::filesystem::path& root, Index number) {
  return fmt::format("{}.{}", without_slash(root).string(), number);
}

// The error number of a rename that never replaces what is there; 0 if it is done. Network file systems know
// no such call: there another process could take the name in between.
int rename_to_free(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  struct stat ignored {};
  if (::lstat(to.c_str(), &ignored) == 0) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::optional<std::filesystem::path> RunDirectory::noted_checkpoints() const {
  if (!is_there(checkpointed())) return std::nullopt;
  std::string noted = read_file(checkpointed());
  noted.erase(noted.find_last_not_of('\n') + 1);
  return noted;
}

bool RunDirectory::exists() const {
  std::error_code error;
  return std::filesystem::is_directory(root, error) && !std::filesystem::is_empty(root, error);
}

bool RunDirectory::is_held() const {
  const int probe = ::open(lock().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (probe < 0) return false;
  const bool held = ::flock(probe, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(probe);
  return held;
}

RunLock::RunLock(const RunDirectory& directory)
    : RunLock(directory.lock(), fmt::format("run.dir '{}'", directory.root.string())) {
  root_ = directory.root;
  directory_ = ::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

// NFS keeps such locks too, from version 4 on.
RunLock::RunLock(const std::filesystem::path& file, const std::string& what)
    : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  error_if<DataError>(descriptor_ < 0, "cannot open '{}': {}", file.string(), std::strerror(errno));
  // is_held() takes the lock for a moment.
  constexpr int kTries = 5;
  for (int left = kTries; left > 0; --left) {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    if (left > 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::close(descriptor_);
  throw ConfigError(
      "another trainer works in {} (it holds '{}'): wait until it has ended, or name another directory", what,
      file.string());
}

RunLock::~RunLock() {
  for (const int open : {descriptor_, directory_}) {
    if (open >= 0) ::close(open);
  }
}

// Linux knows the present name of an open directory.
std::optional<std::filesystem::path> RunLock::whereabouts() const {
  struct stat held {};
  if (::fstat(directory_, &held) != 0) return std::nullopt;
  if (is_directory_of(held, root_)) return root_;
  std::error_code error;
  const std::filesystem::path moved =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", directory_), error);
  if (error || !is_directory_of(held, moved)) return std::nullopt;
  return moved;
}

RunDirectory create_run_directory(const std::filesystem::path& root) {
  std::error_code error;
  error_if(std::filesystem::exists(root, error) && !std::filesystem::is_directory(root, error),
           "run.dir '{}' is a file; name a directory that does not exist yet", root.string());
  error_if(std::filesystem::exists(root, error) && !std::filesystem::is_empty(root, error),
           "run.dir '{0}' is not empty, and a run is never overwritten; name another "
           "directory (--run.dir {0}-2), or move this one away; {1} moves away the directory of a run",
           root.string(), kRestart);
  create_synced_directories(root, error);
  if (error) throw DataError("cannot create run.dir '{}': {}", root.string(), error.message());
  return {root};
}

RunDirectory reuse_run_directory(const std::filesystem::path& root) {
  const RunDirectory run{root};
  std::error_code error;
  const bool recorded = is_there(run.record());  // and not as complete: its end was not written as a whole
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    const bool of_its_end =
        path == run.model() || path == run.summary() || path == run.evaluation() || path == run.report();
    const bool ours =
        path == run.config() || path == run.record() || path == run.plan() || path == run.ranks() ||
        path == run.log() || path == run.metrics() || path == run.tensorboard() || path == run.traces() ||
        path == run.trace() || path == run.schema() || path == run.rejects() || path == run.checkpoints() ||
        path == run.lock() || path == run.id() || path == run.stop() || path == run.checkpointed() ||
        path.filename().string().find(".partial-") != std::string::npos;
    if (ours || (of_its_end && recorded)) continue;
    throw ConfigError(
        "run.dir '{}' is not empty, and not the directory of a run that was ended early: it has '{}'; name "
        "another directory, or move this one away; {} moves away the directory of a run",
        root.string(), path.filename().string(), kRestart);
  }
  return run;
}

RunLock claim_to_move(const RunDirectory& run) {
  std::error_code ignored;
  error_if(std::filesystem::equivalent(run.root, std::filesystem::current_path(ignored), ignored),
           "{} cannot move run.dir '{}', which is the working directory; start from "
           "another one",
           kRestart, run.root.string());
  if (!is_there(run.config()) || (!is_there(run.plan()) && !is_there(run.record())))
    reuse_run_directory(run.root);
  return RunLock(run);
}

std::filesystem::path move_away(const RunDirectory& run) {
  const std::filesystem::path root = without_slash(run.root);
  for (Index number = 1;; ++number) {
    const std::filesystem::path away = numbered(run.root, number);
    const int error = rename_to_free(root, away);
    if (error == 0) return away;
    if (error == EEXIST || error == ENOTEMPTY) continue;
    throw DataError("cannot move run.dir '{}' to '{}': {}", root.string(), away.string(),
                    std::strerror(error));
  }
}

RunDirectory make_directory_beside(const std::filesystem::path& root) {
  std::filesystem::path path = without_slash(root);
  for (Index number = 1;; ++number) {
    std::error_code error;
    if (create_synced_directories(path, error)) return {path};
    error_if<DataError>(error && !std::filesystem::exists(path), "cannot create '{}': {}", path.string(),
                        error.message());
    path = numbered(root, number);
  }
}

void expect_run_exists(const std::filesystem::path& root) {
  if (is_there(root)) return;
  const std::string nearest = nearest_path(root, std::filesystem::file_type::directory);
  throw ConfigError(
      "there is no run '{}'{}", root.string(),
      nearest.empty() ? ": expected the directory of a run" : fmt::format("; did you mean '{}'?", nearest));
}

RunDirectory open_run_directory(const std::filesystem::path& root) {
  const RunDirectory run{root};
  expect_run_exists(root);
  for (const std::filesystem::path& file : {run.config(), run.model()}) {
    if (is_there(file)) continue;
    throw ConfigError("'{}' is not the directory of a finished run: it has no {}{}", root.string(),
                      file.filename().string(),
                      is_there(run.config()) && run.noted_checkpoints()
                          ? fmt::format("; its last checkpoint is a model, too: '{}@last'", root.string())
                          : "");
  }
  return run;
}

}  // namespace lockstep
