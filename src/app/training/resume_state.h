// The state that a start finds in run.dir, and so the step from which the run resumes: the first, or that of
// a checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/setup/experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// Values of run.resume: resume the run in run.dir, or move it away first.
inline constexpr const char* kAuto = "auto";
inline constexpr const char* kRestart = "restart";

struct ResumeState {
  RunDirectory directory;
  bool is_new = true;                                 ///< the directory is made by this run
  std::optional<Index> completed_steps = {};          ///< steps of the run in it, if it went to its end
  std::unique_ptr<CheckpointReader> checkpoint = {};  ///< null: from the first step
  std::optional<Config> config = {};                  ///< the config of the run that is resumed
  std::string schema = {};                            ///< the checkpoint's; "" if its data have none
  RunLock lock = {};                                  ///< rank 0: run.dir is this run's
  RunLock checkpoints_lock = {};        ///< rank 0: checkpoint.dir is this run's, if it is given
  bool restarts = false;                ///< the directory's content is moved away first, by run.resume
  RunLock moved_lock = {};              ///< rank 0: held on the directory that is moved away
  std::filesystem::path moved_to = {};  ///< rank 0: where it is then
  bool root_was_there = false;          ///< rank 0: run.dir existed, as an empty directory or a link to one

  /// How far the newest checkpoint is; zeros if there is none.
  Progress saved() const { return checkpoint ? checkpoint->header().progress : Progress{}; }
  /// Bytes of metrics.jsonl to keep; later lines belong to steps that run again.
  Index metrics_bytes() const { return is_new || !checkpoint ? 0 : checkpoint->header().metrics_bytes; }
};

/// "the same command", with the flags that it needs to resume the run that this config has begun.
std::string resume_command(const Config& config);

/// The directory of the checkpoints of a run.
CheckpointDirectory checkpoint_directory(const Config& config, const RunDirectory& directory);

/// *Collective.* Finds the step from which the run of this config resumes: looks for the newest whole
/// checkpoint, logs what is wrong with newer ones and puts those aside. Errors: AgreedError, also if all
/// checkpoints are damaged.
ResumeState find_resume_state(Communicator& comm, const Config& config);

/// The config with what it leaves open and the resumed run had: the number of replicas.
Config complete(Config config, const ResumeState& resume);

/// Logs the step from which the run resumes. `plan` and the exchange algorithm: those of this run.
void log_resume(const Config& config, const ResumeState& resume, const RunPlan& plan,
                const std::string& algorithm);

/// Rank 0: removes files that a process which was ended left behind half written. Requires that no other
/// process works in the directory.
void remove_partial_files(const RunDirectory& run);

/// Rank 0: makes the directory, and that of the checkpoints, ready to be written to, and moves away what a
/// restart finds there. Where it fails, undo_preparation() takes back what it did.
void prepare(ResumeState& resume, const Config& config);

// The differences that are allowed between a run and the one that it resumes.

/// Errors: ConfigError with a list of the keys that differ from the checkpoint's run and would make another
/// experiment of it, but for those in run.resume_allow.
void refuse_changes(const Config& now, const RecordSource& train, const ResumeState& resume);

/// Errors: always ConfigError, with the list of `changes`.
[[noreturn]] void refuse_resume(const ResumeState& resume, const std::vector<std::string>& changes);

// A short name for the config of a run: two runs have the same if nothing differs that could change what
// comes of them.

/// 16 hexadecimal digits over all keys and values, but for those of names_no_result().
std::string config_digest(const Config& config);

}  // namespace lockstep
