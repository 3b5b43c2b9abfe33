// The directory that a run leaves behind: config.toml, run.json, plan.txt, ranks.txt, log.txt, metrics.jsonl,
// summary.json, report.html and model.safetensors, and its checkpoints; for tables also schema.json, and
// rejects.txt if bad records were skipped.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/types.h"

namespace lockstep {

struct RunDirectory {
  std::filesystem::path root;

  std::filesystem::path config() const { return root / "config.toml"; }
  /// See run_record.h.
  std::filesystem::path record() const { return root / "run.json"; }
  std::filesystem::path plan() const { return root / "plan.txt"; }
  std::filesystem::path ranks() const { return root / "ranks.txt"; }
  std::filesystem::path log() const { return root / "log.txt"; }
  std::filesystem::path metrics() const { return root / "metrics.jsonl"; }
  std::filesystem::path summary() const { return root / "summary.json"; }
  /// The single predictions that report.html shows.
  std::filesystem::path evaluation() const { return root / "evaluation.json"; }
  std::filesystem::path importance() const { return root / "importance.json"; }
  std::filesystem::path schema() const { return root / "schema.json"; }
  std::filesystem::path rejects() const { return root / "rejects.txt"; }
  std::filesystem::path report() const { return root / "report.html"; }
  std::filesystem::path tensorboard() const { return root / "tensorboard"; }
  /// Timelines, a file of each rank, and all of them merged.
  std::filesystem::path traces() const { return root / "trace"; }
  std::filesystem::path trace() const { return root / "trace.json.gz"; }
  std::filesystem::path model() const { return root / "model.safetensors"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  std::filesystem::path stop() const { return root / "stop"; }
  std::filesystem::path lock() const { return root / "lock"; }
  /// A random text that identifies the run, also when the directory is moved; see checkpoint.h.
  std::filesystem::path id() const { return root / "id"; }
  /// Names the directory in which the run has made checkpoints; absent before the first one.
  std::filesystem::path checkpointed() const { return root / "checkpointed"; }

  /// The directory that `checkpointed` names; nothing before the first checkpoint. Errors: DataError if it
  /// cannot be read.
  std::optional<std::filesystem::path> noted_checkpoints() const;

  bool exists() const;
  /// Whether a trainer works in it, which then holds the lock.
  bool is_held() const;
};

/// The right to work in a directory, as long as it is held; it ends with the process, however that ends.
class RunLock {
 public:
  RunLock() = default;
  /// Errors: ConfigError if another process has it; DataError.
  explicit RunLock(const RunDirectory& directory);
  /// `file` is made if there is none; `what`, for messages, is the directory with its key. Errors: as above.
  RunLock(const std::filesystem::path& file, const std::string& what);
  ~RunLock();
  RunLock(RunLock&& other) noexcept { *this = std::move(other); }
  RunLock& operator=(RunLock&& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(directory_, other.directory_);
    return *this;
  }
  bool held() const { return descriptor_ >= 0; }
  /// The present path of the directory, which differs from its name if it was moved; nothing if it was
  /// deleted. Requires held().
  std::optional<std::filesystem::path> whereabouts() const;

 private:
  std::filesystem::path root_;
  int descriptor_ = -1;
  int directory_ = -1;
};

/// Creates a fresh run directory (and those above it). Errors: ConfigError if it exists and is not empty: a
/// run is never overwritten; DataError if it cannot be made.
RunDirectory create_run_directory(const std::filesystem::path& root);

/// The directory of a run that was ended before its first checkpoint, for a new start in it. Errors:
/// ConfigError if something else is in it.
RunDirectory reuse_run_directory(const std::filesystem::path& root);

/// The right to move the directory of a run away, which may be finished or not. Errors: ConfigError if it is
/// not one, or if another process works in it; DataError.
RunLock claim_to_move(const RunDirectory& run);

/// Renames the directory to ROOT.1, or to the first of ROOT.2, ROOT.3, ... that is free, and gives that name.
/// Errors: DataError.
std::filesystem::path move_away(const RunDirectory& run);

/// A new directory: ROOT, or the first of ROOT.1, ROOT.2, ... that is free. Errors: DataError.
RunDirectory make_directory_beside(const std::filesystem::path& root);

/// Errors: ConfigError, with the nearest name beside it, if nothing has this name.
void expect_run_exists(const std::filesystem::path& root);

/// A finished run. Errors: ConfigError, naming what is missing, if this is none.
RunDirectory open_run_directory(const std::filesystem::path& root);

}  // namespace lockstep
