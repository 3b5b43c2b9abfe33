// How a run is saved and stopped: its time limit, its stop file and signals, its checkpoints.
#pragma once

#include <optional>

#include "app/setup/experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/loop/run_control.h"
#include "lockstep/train/loop/training_context.h"
#include "lockstep/train/storage/checkpoint/writer.h"
#include "resume_state.h"
#include "train_run.h"

namespace lockstep {

/// Parts of it refer to others, so it stays where it was made. `experiment` and `resume` must outlive it.
struct RunWatch {
  /// *Local.* Errors: ConfigError.
  RunWatch(Communicator& comm, const Experiment& experiment, const ResumeState& resume,
           const RunRequest& request);
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  TimeLeft left;  ///< time until this job is ended by force
  Interval every;
  RunControl control;
  CheckpointWriter writer;
  Saving saving;
  std::optional<EarlyStopping> early_stopping;
  std::optional<Plateau> plateau;
};

/// Rank 0: logs the time limit, if there is one.
void report_time_left(const TimeLeft& left);

}  // namespace lockstep
