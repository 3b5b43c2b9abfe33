#include "catalogs.h"

#include "lockstep/base/catalog.h"
#include "lockstep/config/help.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/loss.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/report/history/viewed_run.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/storage/exporter.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {

namespace {

// The names of a catalog, and the one that leaves the choice to the program.
template <class Catalog>
std::vector<std::string> names_and(const char* automatic, const Catalog& catalog) {
  std::vector<std::string> names = catalog_names(catalog);
  names.insert(names.begin(), automatic);
  return names;
}

// A strategy that is still to be chosen may read any key.
ConfigFact fact_of_strategy(bool (*fact)(const DistOptions&)) {
  return [fact](const Config& config) {
    return config.distribute.strategy == kAutoStrategy || fact(config.distribute);
  };
}

ConfigFacts config_facts() {
  return {.has_batch_norm =
              [](const Config& config) {
                return model_text(config.model).find("batch_norm") != std::string::npos;
              },
          .asynchronous = fact_of_strategy(is_asynchronous),
          .uses_algorithm = fact_of_strategy(uses_algorithm),
          .calibrates = fact_of_strategy([](const DistOptions& options) {
            return uses_algorithm(options) && options.algorithm == kAutoAlgorithm;
          })};
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
                                 .formats_of = {{"predict", catalog_names(prediction_file_catalog())},
                                                {"export", catalog_names(exporter_catalog())},
                                                {"export-metrics", {"csv"}},
                                                {"reference", catalog_names(reference_catalog())}},
                                 .facts = config_facts()};
  return kNames;
}

std::span<const Option> known_options() {
  static const std::vector<Option> kOptions = declare_options(known_names());
  return kOptions;
}

std::vector<Setting> result_options(const Config& config) {
  std::vector<Setting> result;
  for (const Option& option : known_options()) {
    if (names_no_result(option.key) || !option.has_value(config)) continue;
    result.push_back({option.key, option.text(config)});
  }
  return result;
}

std::vector<Choice> choices(const Config& config) {
  std::vector<Choice> all{choice_in(loss_catalog(), "train.loss", config.loss.loss),
                          choice_in(optimizer_catalog(), "train.optimizer", config.optimizer.optimizer),
                          choice_in(decay_catalog(), "train.schedule", config.schedule.schedule),
                          choice_in(codec_catalog(), "distribute.compression", config.distribute.compression),
                          choice_in(format_catalog(), "data.format", choose_format(config.data).name)};
  if (config.distribute.strategy != kAutoStrategy) {
    all.push_back(choice_in(strategy_catalog(), "distribute.strategy", config.distribute.strategy));
  }
  return all;
}

}  // namespace lockstep
