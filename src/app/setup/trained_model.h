// The model of a finished run with its weights. Its data need not be there.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/data/dataset.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// The run that --model names, and its config with the flags.
struct FinishedRun {
  RunDirectory directory;
  Config config;
};

/// *Collective.* Checks whether this machine and all ranks suit. Errors: AgreedError.
FinishedRun open_finished_run(Communicator& comm, const CommandLine& line);

/// The sets to evaluate that flags name.
std::set<Split> named_splits(const Config& config);

struct TrainedModel {
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Model> model;
  std::unique_ptr<Model> stage;  ///< the part of it that this rank runs; null: all of it
  AlignedBuffer<Scalar> stored;  ///< the weights of run(), then the running moments
  Scalar temperature = 1;        ///< what its outputs are divided by

  const Model& run() const { return stage ? *stage : *model; }
  ParamStore store() { return {.layout = &run().stored_layout(), .values = stored.span()}; }
  ModelValues values() const { return stored_values(run(), stored.span()); }
};

/// The stages of a model that so many ranks evaluate, or predict with: distribute.stages, if they are a
/// multiple of that; else one, so that each rank takes the whole model. Rank 0 says so where there are
/// several. Errors: ConfigError where the config asks for what stages cannot do.
StageGrid inference_grid(const Config& config, Index ranks, Index rank);

/// A stage of this model, which outlives it, as distribute.cut says. Errors: ConfigError.
std::unique_ptr<Model> make_stage(const Config& config, const Model& whole, Index stage);

/// The values that a run stored for `model`, which may be a stage: an arena of its stored_layout(). Nothing
/// else of the file is read. Errors: DataError.
AlignedBuffer<Scalar> load_stored(const RunDirectory& directory, const Model& model);

/// The temperature of the model that a run stored; 1, with a note, where train.calibrate has not come to
/// this model, as to that of a checkpoint. `form`: that of its loss. Errors: DataError.
Scalar load_temperature(const RunDirectory& directory, const Config& config, const OutputForm& form);

/// With all its weights. Errors: ConfigError, DataError.
TrainedModel load_trained_model(const RunDirectory& directory, const Config& config);
/// With those of the stage of this rank alone. Errors: likewise.
TrainedModel load_trained_model(const RunDirectory& directory, const Config& config, const StageGrid& grid,
                                Index rank);

/// The probability from which on the model of the run says yes: that of eval.threshold, which may name the
/// measure that the run has chosen it by; nothing if there is none. Rank 0 warns where such a model has no
/// threshold, as in a checkpoint. Errors: ConfigError if it was chosen by another measure.
std::optional<double> threshold_of(const RunDirectory& directory, const Config& config, Index rank);

// --model: a run, or one of its checkpoints by a name after '@'.

/// "RUN@best", "RUN@last" or "RUN@step-500" as the directory of that checkpoint; any other text, and the name
/// of something that exists, as it is. Errors: ConfigError if there is no such checkpoint, with those that
/// there are; DataError if the directory cannot be read.
std::string find_model(const std::string& text);

}  // namespace lockstep
