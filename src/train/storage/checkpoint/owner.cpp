#include "lockstep/train/storage/checkpoint/owner.h"

#include <fmt/format.h>

#include <optional>
#include <random>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

constexpr const char* kOwnerName = "owner";
constexpr const char* kLockName = "lock";

// The identity of a run among others.
struct RunIdentity {
  std::string id;  // "" if it has none
  std::filesystem::path directory;
};

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::filesystem::path real_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::absolute(path).lexically_normal() : real;
}

bool same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  return real_path(a) == real_path(b) || std::filesystem::equivalent(a, b, ignored);
}

RunIdentity identity_of(const RunDirectory& run) {
  std::string id = is_there(run.id()) ? read_file(run.id()) : "";
  if (id.ends_with('\n')) id.pop_back();
  return {.id = id, .directory = real_path(run.root)};
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// The file has two lines: the id, and the run directory.
std::optional<RunIdentity> owner_in(const CheckpointDirectory& checkpoints) {
  const std::filesystem::path file = checkpoints.root() / kOwnerName;
  if (!is_there(file)) return std::nullopt;
  const std::string text = read_file(file);
  const std::size_t end = text.find('\n');
  if (end == 0 || end == std::string::npos || !text.ends_with('\n') || end + 1 == text.size()) {
    throw DataError(
        fmt::format("'{}' is damaged: expected the id and the directory of the run that owns the checkpoints "
                    "beside it; remove it if that is this run",
                    file.string()));
  }
  return RunIdentity{.id = text.substr(0, end), .directory = text.substr(end + 1, text.size() - end - 2)};
}

// The run whose run directory the checkpoints lie in, as they do unless checkpoint.dir is set.
std::optional<RunDirectory> run_around(const CheckpointDirectory& checkpoints) {
  const RunDirectory around{real_path(checkpoints.root()).parent_path()};
  if (!same_place(around.checkpoints(), checkpoints.root()) || !is_there(around.config()))
    return std::nullopt;
  return around;
}

// A run that was moved is the owner still. A copy of it has the id too, but then the owner is still in its
// place.
bool is_owner(const RunIdentity& owner, const RunIdentity& run, bool is_new) {
  if (same_place(owner.directory, run.directory)) return owner.id == run.id || (run.id.empty() && !is_new);
  return owner.id == run.id && identity_of({owner.directory}).id != owner.id;
}

[[noreturn]] void refuse(const CheckpointDirectory& checkpoints, const std::string& whose) {
  throw ConfigError(fmt::format(
      "checkpoint.dir '{}' is for the checkpoints of another run ({}), and two runs would remove "
      "each other's. Give this run another checkpoint.dir, or leave the key out (its checkpoints are in "
      "run.dir then). To go on with that run, name its run.dir. If the checkpoints that are there are no "
      "longer "
      "needed, remove them",
      checkpoints.root().string(), whose));
}

bool is_own(const CheckpointDirectory& checkpoints, const RunDirectory& run) {
  return same_place(checkpoints.root(), run.checkpoints()) || same_place(checkpoints.root(), run.root);
}

}  // namespace

void refuse_foreign_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run) {
  if (is_own(checkpoints, run)) return;
  if (const auto around = run_around(checkpoints)) {
    refuse(checkpoints, fmt::format("'{}'", around->root.string()));
  }
  const std::vector<Index> steps = checkpoints.steps();
  if (steps.empty()) return;
  const bool is_new = !is_there(run.config());
  if (const auto owner = owner_in(checkpoints)) {
    if (is_owner(*owner, identity_of(run), is_new)) return;
    refuse(checkpoints, fmt::format("'{}'", owner->directory.string()));
  }
  if (!is_new) return;
  refuse(checkpoints, fmt::format("its run.dir stands in '{}'",
                                  (checkpoints.finished(steps.front()) / kCheckpointConfig).string()));
}

RunLock claim_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run) {
  if (is_own(checkpoints, run)) return {};
  const std::filesystem::path& root = checkpoints.root();
  std::error_code error;
  create_synced_directories(root, error);
  if (error) {
    throw DataError(fmt::format("cannot create checkpoint.dir '{}': {}", root.string(), error.message()));
  }
  RunLock lock(root / kLockName, fmt::format("checkpoint.dir '{}'", root.string()));
  refuse_foreign_checkpoints(checkpoints, run);
  RunIdentity identity = identity_of(run);
  if (identity.id.empty()) {
    // A run that lost its id takes it back from what it owns.
    const auto owner = checkpoints.steps().empty() ? std::nullopt : owner_in(checkpoints);
    identity.id = owner ? owner->id : random_id();
    write_file_atomically(run.id(), identity.id + "\n");
  }
  write_file_atomically(root / kOwnerName, fmt::format("{}\n{}\n", identity.id, identity.directory.string()));
  return lock;
}

}  // namespace lockstep
