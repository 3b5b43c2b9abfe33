#include "catalogs.h"

#include "lockstep/base/catalog.h"
#include "lockstep/data/format.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/preset.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/storage/exporter.h"

namespace lockstep {

namespace {

// The names of a catalog, and the one that leaves the choice to the program.
template <class Catalog>
std::vector<std::string> names_and(const char* automatic, const Catalog& catalog) {
  std::vector<std::string> names = catalog_names(catalog);
  names.insert(names.begin(), automatic);
  return names;
}

}  // namespace

const KnownNames& known_names() {
  static const KnownNames kNames{.losses = catalog_names(loss_catalog()),
                                 .optimizers = catalog_names(optimizer_catalog()),
                                 .schedules = catalog_names(decay_catalog()),
                                 .formats = catalog_names(format_catalog()),
                                 .strategies = names_and(kAutoStrategy, strategy_catalog()),
                                 .algorithms = names_and(kAutoAlgorithm, algorithm_catalog()),
                                 .codecs = catalog_names(codec_catalog()),
                                 .presets = catalog_names(preset_catalog()),
                                 .metrics = catalog_names(metric_catalog()),
                                 .export_formats = catalog_names(exporter_catalog())};
  return kNames;
}

namespace {

// Keys that are read, all of them, if what is named is there.
Choice choice_if(bool chosen, std::string chooser, std::vector<std::string> keys) {
  Choice choice{std::move(chooser), "", {}, std::move(keys)};
  if (chosen) choice.keys = choice.all_keys;
  return choice;
}

// Keys that only models with batch norm read.
Choice batch_norm_choice(const ModelOptions& model) {
  const bool some = model_text(model).find("batch_norm") != std::string::npos;
  return choice_if(some, "a batch_norm layer in the model", {"model.batch_norm", "eval.precise_bn"});
}

// Keys that only asynchronous workers read.
std::vector<Choice> own_pace_choices(const DistOptions& distribute) {
  const bool alone = steps_alone(distribute);
  const bool bounded = alone && distribute.mode == ServerMode::kBounded;
  return {choice_if(alone, "distribute.mode async or bounded, or distribute.backup_workers",
                    {"distribute.record", "distribute.replay", "distribute.timeout_seconds"}),
          choice_if(alone && distribute.mode != ServerMode::kSync, "distribute.mode async or bounded",
                    {"distribute.staleness_lr"}),
          choice_if(bounded, "distribute.mode bounded", {"distribute.staleness"})};
}

// Keys that only all-reduce exchanges read: every rank gets the whole sum.
std::vector<Choice> algorithm_choices(const DistOptions& distribute) {
  const bool some = uses_algorithm(distribute);
  return {choice_if(some, "distribute.strategy allreduce or local_sgd with distribute.compression fp32",
                    {"distribute.algorithm"}),
          choice_if(some && distribute.algorithm == kAutoAlgorithm, "distribute.algorithm auto",
                    {"distribute.calibrate"})};
}

// Keys that only streamed records need.
Choice stream_choice(const DataOptions& data) {
  return choice_if(data.memory != MemoryMode::kLoad, "data.memory stream or auto",
                   {"data.memory_limit", "data.shuffle_buffer", "data.shard_by"});
}

}  // namespace

std::vector<Choice> choices(const Config& config) {
  std::vector<Choice> all = own_pace_choices(config.distribute);
  for (Choice& choice : algorithm_choices(config.distribute)) all.push_back(std::move(choice));
  const std::vector<Choice> named{
      batch_norm_choice(config.model),
      stream_choice(config.data),
      choice_in(loss_catalog(), "train.loss", config.loss.loss),
      choice_in(optimizer_catalog(), "train.optimizer", config.optimizer.optimizer),
      choice_in(decay_catalog(), "train.schedule", config.schedule.schedule),
      choice_in(strategy_catalog(), "distribute.strategy", config.distribute.strategy),
      choice_in(codec_catalog(), "distribute.compression", config.distribute.compression),
      choice_in(format_catalog(), "data.format", choose_format(config.data).name)};
  all.insert(all.end(), named.begin(), named.end());
  return all;
}

}  // namespace lockstep
