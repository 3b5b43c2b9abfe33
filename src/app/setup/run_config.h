// The config of a run: what is left to the program, and combinations of keys that are refused before data are
// opened.
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/types.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/data/options.h"
#include "lockstep/nn/loss.h"

namespace lockstep {

struct TrainingSettings;

/// The placement of the ranks, on which settings depend that the config leaves to the program.
struct Placement {
  Index ranks = 1;
  Index hosts = 1;
};

// A config is complete once it is loaded; only data.memory = "auto" is left to the data that an experiment
// opens. Rank 0 alone reads the file.

/// For a training: the config of the command line, with what is "auto" in it and decides how the run is made,
/// checked. Errors: ConfigError.
Config load_training_config(const CommandLine& line, const ConfigText& text, const Placement& placement);

/// The config of a run that has trained with it, for work with its model: refusals that are about training
/// alone do not count. Errors: ConfigError.
Config load_run_config(const CommandLine& line, const ConfigText& text);

/// "data.format csv, not text" where the data of a run are of another kind than those of `now`, else "".
std::string other_kind(const Config& run, const Config& now);

/// Refuses as many records of each class in a part where the loss takes numbers. Errors: ConfigError.
void refuse_classes_of_numbers(const Config& config, const ValidationPart& part);

/// Refuses distribute.stages for trainer bench, which takes the model as a whole. Errors: ConfigError.
void refuse_stages(const Config& config);

/// The one that train.loss names.
std::unique_ptr<Loss> make_loss(const Config& config);

/// The settings of a training that the config alone decides: all but the facts of its data.
TrainingSettings training_settings(const Config& config);

/// The directory of encoded texts: data.token_cache, or ".tokens" beside the run.
std::string token_directory(const Config& config);

}  // namespace lockstep
