// Writes checkpoints beside training. Each rank copies what it saves, its own state and its share of the
// model file, and resumes training; a thread of its own writes the copy, and rank 0's, once all ranks have
// written, the manifest, and gives the checkpoint its name. Ranks report to each other by files, since only
// main threads may talk to other ranks, and main threads have better things to do.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/timer.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

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

class CheckpointWriter {
 public:
  /// Keeps the newest `keep`, and the best. References must outlive it.
  CheckpointWriter(Communicator& comm, CheckpointDirectory directory, Index keep, CheckpointHooks hooks = {});
  /// Completes the checkpoint that is being written if all ranks get here; else gives it up.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

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
