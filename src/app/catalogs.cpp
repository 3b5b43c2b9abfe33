#include "catalogs.h"

#include "lockstep/base/catalog.h"
#include "lockstep/data/records.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/dist/wire.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/preset.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {

const KnownNames& known_names() {
  static const KnownNames kNames{.losses = catalog_names(loss_catalog()),
                                 .optimizers = catalog_names(optimizer_catalog()),
                                 .schedules = catalog_names(decay_catalog()),
                                 .formats = catalog_names(format_catalog()),
                                 .strategies = catalog_names(strategy_catalog()),
                                 .wires = catalog_names(wire_catalog()),
                                 .presets = catalog_names(preset_catalog())};
  return kNames;
}

namespace {

// What only models with batch norm read.
Choice batch_norm_choice(const ModelOptions& model) {
  Choice choice{"a batch_norm layer in the model", "", {}, {"model.batch_norm", "eval.precise_bn"}};
  if (model_text(model).find("batch_norm") != std::string::npos) {
    choice.chosen = "batch_norm";
    choice.keys = choice.all_keys;
  }
  return choice;
}

}  // namespace

std::vector<Choice> choices(const Config& config) {
  return {batch_norm_choice(config.model),
          choice_in(loss_catalog(), "train.loss", config.loss.loss),
          choice_in(optimizer_catalog(), "train.optimizer", config.optimizer.optimizer),
          choice_in(decay_catalog(), "train.schedule", config.schedule.schedule),
          choice_in(strategy_catalog(), "distribute.strategy", config.distribute.strategy),
          choice_in(wire_catalog(), "distribute.wire", config.distribute.wire),
          choice_in(format_catalog(), "data.format", choose_format(config.data).name)};
}

}  // namespace lockstep
