// The model of a finished run with its weights. Its data need not be there.
#pragma once

#include <memory>
#include <optional>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/config/command_line.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

struct TrainedModel {
  std::unique_ptr<Model> model;
  AlignedBuffer<Scalar> stored;  ///< the weights, then the running moments
  Scalar temperature = 1;        ///< what its outputs are divided by

  ParamStore store() { return {.layout = &model->stored_layout(), .values = stored.span()}; }
  ModelValues values() const { return stored_values(*model, stored.span()); }
};

/// The values that a run stored for `model`: an arena of its stored_layout(). Errors: DataError.
AlignedBuffer<Scalar> load_stored(const RunDirectory& directory, const Model& model);

/// The temperature of the model that a run stored; 1, with a note, where train.calibrate has not come to
/// this model, as to that of a checkpoint. Errors: DataError.
Scalar load_temperature(const RunDirectory& directory, const Config& config);

/// Errors: ConfigError, DataError.
TrainedModel load_trained_model(const RunDirectory& directory, const Config& config);

/// The probability from which on the model of the run says yes: that of eval.threshold, which may name the
/// measure that the run has chosen it by; nothing if there is none. Rank 0 warns where such a model has no
/// threshold, as in a checkpoint. Errors: ConfigError if it was chosen by another measure.
std::optional<double> threshold_of(const RunDirectory& directory, const Config& config, Index rank);

/// The command line with the run's own config where none is named.
CommandLine with_config_of_run(const CommandLine& line, const RunDirectory& directory);

}  // namespace lockstep
