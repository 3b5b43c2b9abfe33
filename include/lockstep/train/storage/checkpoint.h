// Checkpoints: what one is, where they lie, and how they are written beside training.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/timer.h"
#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/nn/model.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

// The description of a checkpoint: how far the run had come, its files with checksums, and where in them each
// part of each array lies. Written last, as manifest.json: a checkpoint with it is whole.

/// Bytes that have a checksum (xxh3, 64 bits) of their own; the last ones of a file may be fewer.
inline constexpr Index kCheckedBytes = Index{4} << 20;

struct CheckpointFile {
  Index bytes = 0;
  std::vector<std::uint64_t> checksums;  ///< checksum of each kCheckedBytes

  bool operator==(const CheckpointFile&) const = default;
};

/// Elements of an array, and where they are.
struct CheckpointBlock {
  Range range;
  std::string file;
  Index offset = 0;  ///< bytes
};

struct CheckpointArray {
  DataType type = DataType::kFloat;
  Index size = 0;                       ///< elements of the whole
  std::vector<CheckpointBlock> blocks;  ///< blocks in order, none over another
};

/// Files and arrays, by name: of one writer, or of all. A file may have several writers: each has a part of
/// it, which begins where a checksum does.
struct CheckpointParts {
  std::map<std::string, CheckpointFile> files;
  std::map<std::string, CheckpointArray> arrays;

  /// Adds the parts of the next writer: its part of a file follows those of the writers before.
  void add(const CheckpointParts& other);
};

/// The progress of the run, and the ranks and strategy that made the checkpoint.
struct CheckpointHeader {
  Progress progress;
  Index metrics_bytes = 0;  ///< length of the run's metrics.jsonl
  bool evaluated = false;   ///< the evaluation that is due after its last step was made before it
  double seconds = 0;       ///< time that steps have taken so far
  Index ranks = 1;
  std::string strategy;
  std::string algorithm;    ///< algorithm that carried the exchange out; may be empty
  std::string data;         ///< a description of the size of the training set
  Fingerprint fingerprint;  ///< fingerprint of the training set's content; unknown if a stream has no files
  std::map<std::string, std::string> versions;     ///< versions of the program and its libraries
  std::vector<std::string> incomplete_files = {};  ///< Observer::incomplete_files()
};

struct CheckpointManifest {
  CheckpointHeader header;
  CheckpointParts parts;
};

std::string to_json(const CheckpointParts& parts);
std::string to_json(const CheckpointManifest& manifest);

/// `name`: of the file, for errors. Errors: DataError if the text is not whole or not possible: names that
/// leave the directory, offsets beyond a file, counts that cannot be.
CheckpointParts parse_parts(const std::string& text, const std::string& name);
CheckpointManifest parse_manifest(const std::string& text, const std::string& name);

// A checkpoint as a resumed run reads it. Nothing of it is believed before its checksum is right, and no
// memory is taken by what it claims.

/// Errors: DataError if there is no such file.
void refuse_missing(const std::filesystem::path& path);

class CheckpointReader {
 public:
  /// Reads the manifest. Errors: CannotOpenError; DataError if it is damaged.
  explicit CheckpointReader(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  const CheckpointHeader& header() const { return manifest_.header; }
  /// Compares files with their sizes and checksums: each `ranks`-th, from the `rank`-th on. Errors:
  /// CannotOpenError; DataError naming the file and the block.
  void verify(Index ranks, Index rank) const;
  /// Errors: DataError if one of the files is not there.
  void refuse_missing_files() const;
  /// A text file of it; "" if it has none of that name. Errors: DataError.
  std::string text(const std::string& name) const;
  /// Fills the memory of the parts. Errors: DataError if an array is missing, or not as large or of the type
  /// that is expected; optional parts are left as they are then. Gives the optional arrays that were not
  /// found.
  std::vector<std::string> fill(const SavedState& state) const;

 private:
  std::filesystem::path directory_;
  CheckpointManifest manifest_;
};

// The directory in which the checkpoints of a run are: one directory for each, named by its step. A name that
// ends in ".partial" is one that is being written or was never finished, ".damaged" one that was found so.

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

// Writes checkpoints beside training. Each rank copies what it saves, its own state and its share of the
// model file, and resumes training; a thread of its own writes the copy, and rank 0's, once all ranks have
// written, the manifest, and gives the checkpoint its name. Ranks report to each other by files, since only
// main threads may talk to other ranks, and main threads have better things to do.

class StagedModel;

/// The content of a checkpoint. All of it is copied before training goes on.
struct CheckpointContent {
  CheckpointHeader header;
  std::span<const SavedPart> state;                 ///< each rank passes its own parts
  ModelValues stored = {};                          ///< weights and running moments
  const Layout* layout = nullptr;                   ///< layout of `stored`, as a model file holds it
  Shape input = {};                                 ///< shape of the model's input
  const std::map<std::string, std::string>& texts;  ///< further files by name: config.toml
  const StagedModel* staged = nullptr;              ///< where the model is divided: in place of `stored`
};

/// Functions that rank 0 calls beside writing; each may be null.
struct CheckpointHooks {
  std::function<void()> before = {};  ///< an Error that it throws is why there is no checkpoint
  /// Before a checkpoint gets its name, on the writer's thread: syncs what it refers to; never throws.
  std::function<void()> sync = {};
  std::function<void()> after = {};  ///< once a checkpoint is finished, on the writer's thread; never throws
};

class CheckpointWriter : NoCopy {
 public:
  /// Keeps the newest `keep`, and the best. References must outlive it.
  CheckpointWriter(Communicator& comm, CheckpointDirectory directory, Index keep, CheckpointHooks hooks = {});
  /// Completes the checkpoint that is being written if all ranks get here; else gives it up.
  ~CheckpointWriter();

  /// *Collective.* Starts to write a checkpoint, or skips it if the last one is still being written. A
  /// failure is a warning, never an error: training goes on.
  void start(const CheckpointContent& content);
  /// *Collective, blocking* until what is being written is written, or has failed.
  void finish();
  /// *Collective.* The checkpoint of this step, finished or being written, is the best so far.
  void mark_best(Index step);
  /// Whether there is a checkpoint of this step, finished or being written.
  bool has(Index step) const { return newest_ == step; }
  /// The directory of the checkpoint of this step, once it is finished.
  std::filesystem::path finished(Index step) const { return directory_.finished(step); }
  /// The checkpoint of this step is there already.
  void found(Index step) { newest_ = committed_ = step; }

  /// How the last attempt ended, as far as it is known: "" well, else why not; the same on all ranks.
  const std::string& last_failure() const { return last_failure_; }
  /// Seconds from the start of the last checkpoint to its end, as far as this rank knows; 0 before.
  double last_seconds() const { return last_seconds_; }

 private:
  enum class State { kIdle, kBusy, kFailed };

  State state() const;
  State finish_write();
  void stage(const CheckpointContent& content);
  void write();
  void stage_model(const CheckpointContent& content);
  void gather_model(const StagedModel& model);
  Range share_of_model(Index bytes, Index rank) const;
  void write_parts(const std::filesystem::path& directory);
  void commit(const std::filesystem::path& directory);
  bool wait_for_parts(const std::filesystem::path& directory) const;
  void warn(const std::string& failure);

  Communicator& comm_;
  CheckpointDirectory directory_;
  Index keep_;
  CheckpointHooks hooks_;
  Index newest_ = -1;  // step of the checkpoint written last, or being written
  std::string last_failure_;
  std::atomic<double> last_seconds_ = 0;

  // Staged for the thread.
  CheckpointHeader header_;
  CheckpointParts parts_;
  AlignedBuffer<std::byte> bytes_;
  Range model_;  // bytes of the model file
  AlignedBuffer<std::byte> model_bytes_;
  std::map<std::string, std::string> texts_;
  double pause_ = 0;  // seconds that training stood still for it
  Stopwatch watch_;

  std::thread thread_;
  std::atomic<bool> written_ = true;   // this rank's part, or failed
  std::atomic<bool> over_ = true;      // the thread has nothing more to do
  std::atomic<bool> give_up_ = false;  // another rank has failed
  std::string failure_;                // failure of the thread; read once it is over
  std::mutex best_mutex_;
  Index best_ = -1;       // step to be marked once it is finished
  Index committed_ = -1;  // step of the checkpoint finished last
};

}  // namespace lockstep
