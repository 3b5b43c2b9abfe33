// Mishaps to the files of a run between two starts and during training: checkpoints that are not where they
// were made, and a run directory that is moved or deleted.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lockstep/train/storage/checkpoint/writer.h"
#include "resume_state.h"

namespace lockstep {

/// Whether a path lies in a directory or is it, as far as their names show.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory);

/// *Collective.* For a run that finds no checkpoint. Errors: AgreedError if it has made some: to begin anew
/// would empty its history.
void refuse_lost_checkpoints(Communicator& comm, const Config& config, const RunDirectory& directory);

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

}  // namespace lockstep
