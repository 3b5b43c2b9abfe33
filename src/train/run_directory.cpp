#include "lockstep/train/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {

bool RunDirectory::exists() const {
  std::error_code error;
  return std::filesystem::is_directory(root, error) && !std::filesystem::is_empty(root, error);
}

bool RunDirectory::complete() const {
  std::error_code ignored;
  return std::filesystem::exists(summary(), ignored) && std::filesystem::exists(model(), ignored) &&
         lost().empty();
}

std::vector<std::string> RunDirectory::lost() const {
  std::error_code ignored;
  if (!std::filesystem::exists(summary(), ignored)) return {};
  const nlohmann::json json = nlohmann::json::parse(read_file(summary()), nullptr, false);
  std::vector<std::string> names;
  if (!json.is_object() || !json.contains("lost")) return names;
  for (const nlohmann::json& name : json["lost"]) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

RunLock::RunLock(const RunDirectory& directory)
    : RunLock(directory.lock(), fmt::format("run.dir '{}'", directory.root.string())) {}

// NFS keeps such locks too, from version 4 on.
RunLock::RunLock(const std::filesystem::path& file, const std::string& what)
    : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw DataError(fmt::format("cannot open '{}': {}", file.string(), std::strerror(errno)));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw ConfigError(fmt::format(
      "another trainer works in {} (it holds '{}'): wait until it has ended, or name another directory", what,
      file.string()));
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RunDirectory create_run_directory(const std::filesystem::path& root) {
  std::error_code error;
  if (std::filesystem::exists(root, error) && !std::filesystem::is_directory(root, error)) {
    throw ConfigError(
        fmt::format("run.dir '{}' is a file; name a directory that does not exist yet", root.string()));
  }
  if (std::filesystem::exists(root, error) && !std::filesystem::is_empty(root, error)) {
    throw ConfigError(
        fmt::format("run.dir '{0}' is not empty, and a run is never overwritten; name another "
                    "directory (--run.dir "
                    "{0}-2) or move this one away",
                    root.string()));
  }
  std::filesystem::create_directories(root, error);
  if (error) throw DataError(fmt::format("cannot create run.dir '{}': {}", root.string(), error.message()));
  return {root};
}

RunDirectory reuse_run_directory(const std::filesystem::path& root) {
  const RunDirectory run{root};
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    const bool ours = path == run.config() || path == run.plan() || path == run.ranks() ||
                      path == run.log() || path == run.metrics() || path == run.schema() ||
                      path == run.rejects() || path == run.checkpoints() || path == run.lock() ||
                      path == run.id() || path.filename() == "stall" ||
                      path.filename().string().find(".partial-") != std::string::npos;
    if (ours) continue;
    throw ConfigError(fmt::format(
        "run.dir '{}' is not empty, and not the directory of a run that was ended early: it has '{}'; name "
        "another directory, or move this one away",
        root.string(), path.filename().string()));
  }
  return run;
}

RunDirectory open_run_directory(const std::filesystem::path& root) {
  const RunDirectory run{root};
  std::error_code ignored;
  for (const std::filesystem::path& file : {run.config(), run.model()}) {
    if (std::filesystem::exists(file, ignored)) continue;
    throw ConfigError(fmt::format("'{}' is not the directory of a finished run: it has no {}", root.string(),
                                  file.filename().string()));
  }
  return run;
}

}  // namespace lockstep
