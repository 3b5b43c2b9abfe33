// The directory in which the checkpoints of a run are: one directory for each, named by its step. A name that
// ends in ".partial" is one that is being written or was never finished, ".damaged" one that was found so.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/storage/checkpoint/manifest.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kCheckpointModel = "model.safetensors";
inline constexpr const char* kCheckpointConfig = "config.toml";

/// The step in "step-000000500", the name of a finished checkpoint, or in "step-500"; nothing in another
/// name.
std::optional<Index> step_of(std::string_view name);

class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path finished(Index step) const;
  std::filesystem::path partial(Index step) const;

  /// Steps with a finished checkpoint, the newest first; none if there is no directory. Errors: DataError if
  /// it cannot be read.
  std::vector<Index> steps() const;
  /// The step of the best so far.
  std::optional<Index> best() const;
  /// Errors: DataError.
  void mark_best(Index step) const;

  /// Keeps the newest `keep` and the best. What cannot be removed stays, and what symbolic links lead to.
  void remove_old(Index keep) const;
  /// Makes a new directory for the checkpoint of a step, after all that was never finished is removed.
  /// Errors: DataError, also if something stands under the name that cannot be removed.
  void make_partial(Index step) const;
  /// Removes what was never finished.
  void remove_partial() const;
  /// Out of the way, but not away.
  void set_aside(Index step) const;
  /// Names of what was set aside.
  std::vector<std::string> damaged() const;

 private:
  std::filesystem::path root_;
};

/// Size and checksums of a file as it is on disk. Errors: CannotOpenError; DataError.
CheckpointFile describe_file(const std::filesystem::path& path);
/// Size and checksums of a file that is still to be written, or of a part of it that begins where a checksum
/// does.
CheckpointFile describe_bytes(std::span<const std::byte> bytes);

// How often something is done: by how far training has come, or by the clock.

/// "500 steps", "2000000 samples", "10 minutes", "1 epoch", "never".
struct Interval {
  std::optional<Duration> training;
  std::optional<double> seconds;

  bool ever() const { return training || seconds; }
  /// Whether a border of the interval lies in a step that leads from `before` to `after`. Never by the clock.
  bool is_due(const Progress& before, const Progress& after) const;
};

/// Also seconds and hours. Errors: ConfigError naming `key` and the text.
Interval parse_interval(std::string_view key, std::string_view text);

/// An interval that no clock decides, so that a run is the same each time. Errors as above, also for a time
/// by the clock.
Interval parse_training_interval(std::string_view key, std::string_view text);

/// Seconds of "50 minutes", "1 second", "0.5 hours"; none if the text is anything else, or not above 0.
std::optional<double> clock_seconds(std::string_view text);

// Which run owns a directory of checkpoints outside the run directory (checkpoint.dir). Two runs there would
// resume from each other's checkpoints and remove them, so one run at a time owns it. A run has an id, a
// random text in its directory, and keeps it when that is moved or seen from another host; the directory of
// checkpoints names its owner in the file `owner`.

/// Errors: ConfigError, naming the other run, if the directory has the checkpoints of another run than the
/// one in `run`, or if it is that of another run's own checkpoints; DataError. Changes nothing. A run
/// directory without a config counts as a new run, and no checkpoint is that of a new run. Checkpoints
/// that were copied without their owner are accepted as those of a run that is not new. The run's own
/// RUN/checkpoints is always accepted.
void refuse_foreign_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run);

/// Makes the run the owner: creates the directory, locks it while the result lives, and writes `owner`
/// and, if the run has none, its id. Nothing is done, and no lock held, for the run's own RUN/checkpoints.
/// Errors: as above; ConfigError if another process holds the directory.
RunLock claim_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run);

}  // namespace lockstep
