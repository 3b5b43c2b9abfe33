// Where a run begins: at its first step in a new directory, or where a checkpoint was made.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/checkpoint/reader.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// Values of run.resume: go on with what is in run.dir, or move it away first.
inline constexpr const char* kAuto = "auto";
inline constexpr const char* kRestart = "restart";

struct Beginning {
  RunDirectory directory;
  bool is_new = true;                                 ///< the directory is made by this run
  std::optional<Index> completed_steps = {};          ///< of the run in it, if it went to its end
  std::unique_ptr<CheckpointReader> checkpoint = {};  ///< null: from the first step
  std::optional<Config> config = {};                  ///< of the run that went on before
  std::string schema = {};                            ///< of the checkpoint; "" if its data have none
  RunLock lock = {};                                  ///< rank 0's
  RunLock checkpoints_lock = {};                      ///< rank 0's, if checkpoint.dir is given
  bool restarts = false;                ///< what is in the directory is moved away first, by run.resume
  RunLock moved_lock = {};              ///< rank 0's, of what is moved away
  std::filesystem::path moved_to = {};  ///< rank 0: where it is then
  bool root_was_there = false;          ///< rank 0: the directory, empty, or a link to one

  /// Of metrics.jsonl, what stays.
  Index metrics_bytes() const { return is_new || !checkpoint ? 0 : checkpoint->header().metrics_bytes; }
};

/// "the same command", with what it needs to go on with the run that this config has begun.
std::string command_that_goes_on(const Config& config);

/// Where the checkpoints of a run are.
CheckpointDirectory checkpoint_directory(const Config& config, const RunDirectory& directory);

/// *Collective.* Finds where the run of this config begins: looks for the newest whole checkpoint, says what
/// is wrong with newer ones and puts those aside. Errors: AgreedError, also if all checkpoints are damaged.
Beginning find_beginning(Communicator& comm, const Config& config);

/// What the config leaves open, the checkpoint's run has decided.
void adopt_choices(LoadedConfig& loaded, const Beginning& beginning);

/// Says where the run begins. `algorithm`: that carries the exchange out now.
void tell_beginning(const Config& config, const Beginning& beginning, Index ranks,
                    const std::string& algorithm);

/// Rank 0: makes the directory, and that of the checkpoints, ready to be written to, and moves away what a
/// restart finds there. Where it fails, undo_preparation() takes back what it did.
void prepare(Beginning& beginning, const Config& config);

}  // namespace lockstep
