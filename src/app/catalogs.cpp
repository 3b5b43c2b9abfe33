#include "catalogs.h"

#include "lockstep/base/catalog.h"
#include "lockstep/data/records.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/nn/loss.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {

const KnownNames& known_names() {
  static const KnownNames kNames{.losses = catalog_names(loss_catalog()),
                                 .optimizers = catalog_names(optimizer_catalog()),
                                 .schedules = catalog_names(decay_catalog()),
                                 .formats = catalog_names(format_catalog()),
                                 .strategies = catalog_names(strategy_catalog())};
  return kNames;
}

std::vector<Choice> choices(const Config& config) {
  return {choice_in(loss_catalog(), "train.loss", config.loss.loss),
          choice_in(optimizer_catalog(), "train.optimizer", config.optimizer.optimizer),
          choice_in(decay_catalog(), "train.schedule", config.schedule.schedule),
          choice_in(format_catalog(), "data.format", choose_format(config.data).name)};
}

}  // namespace lockstep
