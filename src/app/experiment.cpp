#include "experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "catalogs.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/held_back.h"
#include "lockstep/data/memory.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/train/metrics.h"

namespace lockstep {
namespace {

void check_features(const Experiment& experiment, const RecordSource& source) {
  const Shape& wanted = experiment.train->info().features;
  const Shape& found = source.info().features;
  if (found == wanted) return;
  throw ConfigError(
      fmt::format("records of '{}' have the shape {}, those of '{}' have {}: all sets must have the same",
                  experiment.train->info().name, to_string(wanted), source.info().name, to_string(found)));
}

// Keys about how gradients travel: who gives one wants them to.
constexpr std::array kTravel{"distribute.algorithm",  "distribute.calibrate",
                             "distribute.bucket_kib", "distribute.progress_thread",
                             "distribute.wire",       "distribute.error_feedback",
                             "distribute.top_k"};

// On one node nothing need travel: the fastest is to share one copy of the weights.
std::string choose_strategy(const LoadedConfig& loaded, const Placement& placement) {
  const Index pretended = loaded.config.debug.ranks_per_node;
  const bool one_node = placement.hosts == 1 && (pretended == 0 || placement.ranks <= pretended);
  const bool travel =
      std::ranges::any_of(kTravel, [&](const char* key) { return loaded.given.contains(key); });
  return one_node && !travel ? "central_storage" : "allreduce";
}

}  // namespace

LoadedConfig load_checked_config(const CommandLine& line, const ConfigText& text,
                                 const Placement& placement) {
  LoadedConfig loaded = load_config(line, text, known_names());
  if (loaded.config.distribute.strategy == kAutoStrategy) {
    loaded.config.distribute.strategy = choose_strategy(loaded, placement);
  }
  check_config(loaded.config, loaded.given, choices(loaded.config));
  return loaded;
}

namespace {

void hold_back_validation(Experiment& experiment) {
  const DataOptions& options = experiment.config.data;
  if (experiment.validation) {
    throw ConfigError("give one of data.validation and data.validation_share, found both");
  }
  HeldBack parts = hold_back(std::move(experiment.train), options.validation_share, experiment.seed());
  experiment.train = std::move(parts.train);
  experiment.validation = std::move(parts.validation);
}

// *Collective.*
void open_data(Experiment& experiment, const std::string& schema, Colleagues& colleagues) {
  const DataOptions& options = experiment.config.data;
  const FormatEntry* format = nullptr;
  colleagues.agree([&] { format = &choose_format(options); });
  const auto open = [&](Split split, const std::string& known) {
    return format->open({options, split, experiment.seed(), colleagues, known});
  };
  experiment.train = open(Split::kTrain, schema);
  const std::string learnt = experiment.train->schema();
  experiment.validation = open(Split::kValidation, learnt);
  experiment.test = open(Split::kTest, learnt);
  if (options.validation_share > 0) colleagues.agree([&] { hold_back_validation(experiment); });
  experiment.config.data.memory =
      is_streamed(options, experiment.train->info()) ? MemoryMode::kStream : MemoryMode::kLoad;
}

void build_model(Experiment& experiment) {
  const Config& config = experiment.config;
  const Shape& features = experiment.train->info().features;
  experiment.model = std::make_unique<Model>(config.model, features);
  experiment.loss = find_entry(loss_catalog(), "loss", config.loss.loss).make(config.loss);
  experiment.metrics = std::make_unique<MetricSet>(config.eval.metrics, experiment.loss->targets(),
                                                   experiment.model->output().size());
  experiment.optimizer =
      find_entry(optimizer_catalog(), "optimizer", config.optimizer.optimizer).make(config.optimizer);
  experiment.normaliser = std::make_unique<Normaliser>(config.data.mean, config.data.std, features.size());
  experiment.augmenter = make_augmenter(config.data.augment, features, experiment.seed());
  for (const RecordSource* source : experiment.sources()) {
    check_features(experiment, *source);
    refuse_misfit(experiment.fit(*source));
  }
}

}  // namespace

Experiment make_experiment(const LoadedConfig& loaded, Colleagues& colleagues, const std::string& schema) {
  Experiment experiment;
  experiment.config = loaded.config;
  open_data(experiment, schema, colleagues);
  colleagues.agree([&] { build_model(experiment); });
  return experiment;
}

std::vector<const RecordSource*> Experiment::sources() const {
  std::vector<const RecordSource*> all;
  for (const RecordSource* source : {train.get(), validation.get(), test.get()}) {
    if (source != nullptr) all.push_back(source);
  }
  return all;
}

FitQuestion Experiment::fit(const RecordSource& source) const {
  return {.data = source.info(), .model = *model, .targets = loss->targets(), .loss = config.loss.loss};
}

TargetRule Experiment::target_rule() const {
  return lockstep::target_rule(*loss, model->output().size());
}

UpdateRules Experiment::update_rules() const {
  return {.weight_decay = config.optimizer.weight_decay, .clip_norm = config.optimizer.clip_norm};
}

RunPlan Experiment::plan(Index world, Index ranks_per_node) const {
  std::shared_ptr<const std::vector<Chunk>> streamed;
  if (config.data.memory == MemoryMode::kStream) {
    const std::span<const Chunk> chunks = train->chunks();
    streamed = std::make_shared<const std::vector<Chunk>>(chunks.begin(), chunks.end());
  }
  Index evaluation_rows = 0;
  for (const RecordSource* source : {validation.get(), test.get()}) {
    if (source != nullptr) evaluation_rows += source->info().rows;
  }
  return make_run_plan({.train = config.train,
                        .data = config.data,
                        .distribute = config.distribute,
                        .schedule = config.schedule,
                        .model = *model,
                        .seed = seed(),
                        .rows = train->info().rows,
                        .record_bytes = train->info().record_bytes,
                        .streamed = streamed,
                        .target_columns = train->info().target_columns,
                        .weighted = train->info().weighted,
                        .optimizer_slots = optimizer->slots(),
                        .evaluation_rows = evaluation_rows,
                        .evaluation_batch = config.eval.batch,
                        .evaluation_rankings = metrics->needs().rankings,
                        .saves = config.checkpoint.every != "never",
                        .world = world,
                        .ranks_per_node = ranks_per_node});
}

}  // namespace lockstep
