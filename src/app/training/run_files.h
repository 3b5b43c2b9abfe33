// Mishaps to the files of a run between two starts and during training: checkpoints that are not where they
// were made, and a run directory that is moved or deleted.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/observer.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/model_file.h"
#include "resume_state.h"

namespace lockstep {

/// Whether a path lies in a directory or is it, as far as their names show.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory);

/// Rank 0: notes in the run directory where its checkpoints are, for refuse_lost_checkpoints(). The next
/// checkpoint does it, should it fail.
void note_checkpoints(const Config& config, const ResumeState& resume);

/// Makes the lines that metrics.jsonl has so far survive a crash, as far as the file system can.
void sync_metrics(const RunDirectory& directory);

/// Checkpoints sync metrics.jsonl, whose length they hold. They leave a note, and are not made in the run
/// directory when another directory has its name. `resume` must outlive the hooks.
CheckpointHooks checkpoint_hooks(const Config& config, const ResumeState& resume);

/// Rank 0: a mishap to the run directory since this process took it, for the middle of a sentence; "" if it
/// is in its place.
std::string describe_lost_directory(const RunDirectory& directory, const RunLock& lock);

/// Rank 0: the directory for the results of the run: run.dir, the directory that it was moved to, or a new
/// one if it was deleted, with `texts` as files by name. Errors: DataError.
RunDirectory find_results_directory(const ResumeState& resume,
                                    const std::map<std::string, std::string>& texts);

/// Rank 0, after the end. Errors: DataError that says where the results are, and what is gone, if the run
/// directory or one of the files that the run has written there is not in its place.
void refuse_lost_files(const ResumeState& resume, const RunDirectory& results);

// Files of a run that could not be written, as on a full disk. They are logged together at the end and kept
// in summary.json; the same command then writes again what its newest checkpoint allows.

class LostFiles {
 public:
  /// So far: files that lack lines, and the last checkpoint. `command`: see resume_command().
  LostFiles(const Observer& output, const CheckpointWriter& writer, std::string command);

  /// Calls `write`, whose DataError means that this file is lost. True if it succeeded.
  bool attempt(const std::string& file, const std::function<void()>& write);

  bool empty() const { return files_.empty(); }
  const std::vector<std::string>& names() const { return files_; }
  /// "lines of log.txt; model.safetensors (cannot write ...)", and what to do.
  std::string describe() const;

 private:
  std::string command_;
  std::vector<std::string> files_;
  std::string text_;
};

/// The files of a resumed run that lack lines that it cannot write again.
std::vector<std::string> incomplete_before(const ResumeState& resume);

/// *Collective.* If a run that went to its end lost files: logs it, or refuses if there is no checkpoint to
/// write them again from. Errors: AgreedError.
void report_lost_before(Communicator& comm, const ResumeState& resume);

// run.resume = "restart": what is in run.dir is moved away, and the run begins again.

/// Rank 0: after a start that failed before anything was learned; a directory left behind would only be in
/// the way of the next attempt. Removes a directory that this start made, empties one that was there, and
/// brings back what was moved away. Without the lock nothing is removed: it is another's.
void undo_preparation(const ResumeState& resume);

// Whether the training set of a resumed run still has the content that it had.

/// Errors: ConfigError with what differs if the training set, once it is read, has not the content that the
/// checkpoint's run had, but for "data.train" in run.resume_allow. Passes where that is not known.
void refuse_other_content(const Config& config, const RecordSource& train, const Fingerprint& found,
                          const ResumeState& resume);

// The texts and facts that describe a run.

/// The config that repeats the run, on any number of ranks.
Config repeating_config(const Experiment& experiment, const RunPlan& plan);
/// Keys of it that have no effect beside the others.
std::set<std::string> idle_keys(const Config& config);

/// The texts by the names of their files; the run directory and each checkpoint hold them.
std::map<std::string, std::string> describing_texts(const Experiment& experiment, const RunPlan& plan);

/// Rank 0: writes the texts that are known before the first step. Only once the run is sure to start: it
/// replaces what an earlier start has written.
void fill_directory(const RunDirectory& directory, const Experiment& experiment, const RunPlan& plan,
                    const std::map<std::string, std::string>& texts);

/// The facts of a threshold that the model file keeps.
ModelFacts threshold_facts(const std::optional<ChosenThreshold>& threshold);

}  // namespace lockstep
