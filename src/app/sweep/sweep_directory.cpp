#include "sweep_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

// The first line in which two texts differ, of each of them.
std::string describe_difference(std::string_view before, std::string_view now) {
  const auto line_of = [](std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  while (!before.empty() || !now.empty()) {
    const std::string_view old_line = line_of(before);
    const std::string_view new_line = line_of(now);
    if (old_line != new_line) return fmt::format("it had '{}', and now there is '{}'", old_line, new_line);
  }
  return "";
}

// Another part of the sweep may be about to write sweep.toml, under a name that begins like it.
void refuse_foreign(const SweepDirectory& directory) {
  std::error_code ignored;
  if (std::filesystem::exists(directory.description(), ignored)) return;
  const std::string own = directory.description().filename().string();
  for (const auto& entry : std::filesystem::directory_iterator(directory.root, ignored)) {
    if (entry.path().filename().string().starts_with(own)) continue;
    const bool is_run = std::filesystem::exists(RunDirectory{directory.root}.config(), ignored);
    throw ConfigError(
        fmt::format("run.dir '{}' {}: name another directory for the sweep", directory.root.string(),
                    is_run ? "is the directory of a run" : "is not empty, and no sweep is in it"));
  }
}

void make_directory(const std::filesystem::path& path) {
  std::error_code error;
  create_synced_directories(path, error);
  if (error) throw DataError(fmt::format("cannot create '{}': {}", path.string(), error.message()));
}

}  // namespace

std::string SweepDirectory::name(Index trial) const {
  return trial == refit ? "refit" : fmt::format("{}-{:04}", word, trial);
}

std::filesystem::path SweepDirectory::lock() const {
  return root / (parts == 1 ? "lock" : fmt::format("lock-{}", part));
}

std::filesystem::path SweepDirectory::claims() const {
  return rows() / (parts == 1 ? "claims" : fmt::format("claims-{}", part));
}

RunLock SweepDirectory::open(const std::string& text) const {
  refuse_foreign(*this);
  make_directory(root);
  std::error_code ignored;
  const bool begun = std::filesystem::exists(description(), ignored);
  const std::string before = begun ? read_file(description()) : text;
  if (before != text) {
    throw ConfigError(
        fmt::format("the sweep in '{}' is another one: {}; name another run.dir, or give what it had",
                    root.string(), describe_difference(before, text)));
  }
  if (!begun) write_file_atomically(description(), text);
  RunLock held(lock(), fmt::format("run.dir '{}'", root.string()));
  std::filesystem::remove_all(claims(), ignored);
  std::filesystem::remove(stop(), ignored);
  make_directory(claims());
  return held;
}

bool SweepDirectory::claim(Index trial, Index rung) const {
  const std::filesystem::path file = claims() / fmt::format("{}-{}", name(trial), rung);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) {
    ::close(descriptor);
    return true;
  }
  if (errno == EEXIST) return false;
  throw DataError(fmt::format("cannot create '{}': {}", file.string(), std::strerror(errno)));
}

std::string describe_sweep(const SweepRequest& request, const std::string& config) {
  std::string text = "# A sweep: what its trials have in common, and the flags that tell them apart.\n";
  for (const std::string& grid : request.grids) text += fmt::format("# --grid {}\n", grid);
  for (const std::string& random : request.randoms) text += fmt::format("# --random {}\n", random);
  if (request.draws > 0) text += fmt::format("# --trials {}\n", request.draws);
  if (request.halving > 0) text += fmt::format("# --halving {}\n", request.halving);
  if (request.folds.folds > 0) {
    text +=
        fmt::format("# --folds {}, by {} {}\n", request.folds.folds, request.folds.by, request.folds.column);
  }
  text += fmt::format("# --ranks-per-trial {}\n", request.ranks_per_trial);
  return text + "\n" + config;
}

}  // namespace lockstep
