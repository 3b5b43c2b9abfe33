// Predictions of each record by the model that was not trained on it.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "sweep_state.h"

namespace lockstep {

/// *Collective over the ranks of a trial.* Writes the predictions for the fold of a finished run into its
/// directory. Errors: AgreedError.
void write_fold_predictions(Communicator& comm, const CommandLine& line, const ConfigText& text);

/// *Collective.* Puts those of all folds together as predictions.csv, in the order of the records; a record
/// that is in no fold has empty cells. Errors: AgreedError.
void join_fold_predictions(Communicator& comm, const CommandLine& line, const SweepState& state);

}  // namespace lockstep
