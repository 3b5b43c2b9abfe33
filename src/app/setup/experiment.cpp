#include "experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/data/loading/streamed_records.h"
#include "lockstep/data/parts/validation_split.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/class_weights.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/next_token.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/plan/run_plan.h"
#include "run_config.h"

namespace lockstep {
namespace {

void check_record_features(const Experiment& experiment, const RecordSource& source) {
  const Shape& wanted = experiment.model->input();
  const Shape& found = source.info().features;
  if (found == wanted) return;
  const std::string expected =
      experiment.train ? fmt::format("those of '{}' have {}: all sets must have the same",
                                     experiment.train->info().name, to_string(wanted))
                       : fmt::format("but the model takes {}: give records like those that it was trained on",
                                     to_string(wanted));
  throw ConfigError("records of '{}' have the shape {}, {}", source.info().name, to_string(found), expected);
}

// *Collective.* Opens `wanted`, and what it takes to know them.
void open_data(Experiment& experiment, const std::set<Split>& wanted, const std::string& schema,
               PeerGroup& peers) {
  DataOptions data = experiment.config.data;
  data.text.cache = token_directory(experiment.config);
  DataSets sets = open_sets(
      {.data = data, .wanted = wanted, .seed = experiment.seed(), .schema = schema, .peers = peers});
  experiment.train = std::move(sets.train);
  experiment.validation = std::move(sets.validation);
  experiment.test = std::move(sets.test);
  experiment.held = std::move(sets.held);
}

// Refuses what the config says of class weights if it cannot be done.
void state_class_weights(Experiment& experiment) {
  const std::vector<std::string>& option = experiment.config.train.class_weights;
  if (option.empty()) return;
  const TargetKind targets = experiment.loss->targets();
  refuse_if(targets == TargetKind::kValue, "train.class_weights with a loss on numbers");
  refuse_if(targets == TargetKind::kBinary && experiment.outputs() > 1,
            "train.class_weights with several targets of yes or no");
  if (is_balanced(option) || experiment.sources().empty()) return;
  experiment.stated_class_weights = match_class_weights(
      parse_class_weights(option), experiment.sources().front()->info(), experiment.classes());
}

// Refuses eval.threshold for outputs that are not the probability of one yes.
void refuse_threshold(const Experiment& experiment) {
  if (experiment.config.eval.threshold.empty()) return;
  const OutputForm form = experiment.loss->form();
  const bool scores = form.targets != TargetKind::kValue && form.link == Link::kIdentity;
  refuse_if(!has_one_yes(form, experiment.outputs()) && !scores,
            "eval.threshold with a model that does not say one yes or no");
  refuse_if(scores, "eval.threshold with a hinge loss");
}

void build_metrics(Experiment& experiment) {
  experiment.metrics =
      std::make_unique<MetricSet>(experiment.config.eval.metrics, experiment.loss->form(),
                                  experiment.outputs(), experiment.scales(), experiment.characters());
}

// Refuses report.sample where nothing can continue it.
void build_sample(Experiment& experiment) {
  constexpr Index kTokens = 200;
  const std::string& beginning = experiment.config.report.sample;
  if (beginning.empty()) return;
  const std::shared_ptr<const Vocabulary> vocabulary = experiment.train->vocabulary();
  refuse_if(!vocabulary, "report.sample without a text");
  refuse_if(!experiment.validation && !experiment.test, "report.sample without a set that is evaluated");
  refuse_if(experiment.config.distribute.stages != 1, "report.sample with distribute.stages");
  std::shared_ptr<TextGenerator> texts;
  try {
    texts = std::make_shared<TextGenerator>(*experiment.model, DrawOptions{.tokens = vocabulary->size()},
                                            vocabulary->encode(beginning, "its text"), 1);
  } catch (const Error& error) {
    throw Error(fmt::format("report.sample: {}", error.what()), error.exit_code());
  }
  experiment.continue_sample = [=](const ModelValues& values) {
    texts->start(values);
    for (Index i = 0; i < kTokens; ++i) texts->add_token();
    return printable_lines(vocabulary->decode(texts->text(0)));
  };
}

// Makes what only a training needs.
void build_training(Experiment& experiment) {
  const Config& config = experiment.config;
  build_sample(experiment);
  experiment.stages = experiment.divided(config.distribute);
  experiment.optimizer =
      find_entry(optimizer_catalog(), "optimizer", config.optimizer.optimizer).make(config.optimizer);
  lockstep::update_rules(*experiment.model, config.optimizer);  // refuses what does not fit the model
  experiment.augmenter = make_augmenter(config.data.augment, experiment.model->input(), experiment.seed());
}

// Errors: ConfigError for an embedding at the input that has no row for some token.
void check_embedding(const Experiment& experiment) {
  const Index rows = rows_of_embedding(*experiment.model, *experiment.normaliser);
  if (rows == 0 || experiment.sources().empty()) return;
  const DatasetInfo& data = experiment.sources().front()->info();
  const ModelOp& first = experiment.model->ops().front();
  error_if(rows < data.target_classes,
           "{} has {} rows, and {} of '{}' has {} tokens: give it a row for each, as in embedding({}, {})",
           first.title, rows, data.target_text, data.name, with_commas(data.target_classes),
           data.target_classes, first.out.dims.back());
}

// Errors: DataError for a training set without any target to learn from.
void check_positions(const Experiment& experiment) {
  const TargetRule rule = experiment.target_rule();
  if (!experiment.train || rule.positions == 0 || rule.lengths.empty()) return;
  const auto counts = [&rule](Scalar length) { return at(rule.lengths, static_cast<Index>(length)) > 0; };
  const std::vector<Scalar> lengths = experiment.train->lengths();
  error_if<DataError>(!lengths.empty() && std::ranges::none_of(lengths, counts),
                      "'{}' (training set): no position of its {} samples counts, so there is nothing to "
                      "learn: they are shorter than what the layers need for one output",
                      experiment.train->info().name, with_commas(experiment.train->info().rows));
}

void check_fit(Experiment& experiment) {
  const DataKind& kind = kind_of(experiment.config.data);
  refuse_if(kind.forecasts && experiment.loss->targets() != TargetKind::kValue,
            "data.window with a loss that does not learn numbers");
  refuse_if(experiment.config.model.window_scaling.kind != WindowScaling::Kind::kNone &&
                experiment.loss->form().link != Link::kIdentity,
            "data.window_scale with a loss whose outputs are logarithms");
  for (const RecordSource* source : experiment.sources()) {
    check_record_features(experiment, *source);
    refuse_misfit(experiment.fit(*source));
  }
  if (kind.has_tokens) check_embedding(experiment);
  const OutputForm form = experiment.loss->form();
  const bool has_arrays =
      choose_format(experiment.config.data).reads("data.train_labels") && !kind.has_tokens;
  refuse_if(!experiment.config.data.ignore_label.empty() &&
                (!has_arrays || form.positions == 0 || form.targets != TargetKind::kClass),
            "train.ignore_label without a class at each position");
  check_positions(experiment);
  state_class_weights(experiment);
}

}  // namespace

Experiment make_experiment(Config config, PeerGroup& peers, const std::string& schema) {
  Experiment experiment;
  experiment.config = std::move(config);
  open_data(experiment, {Split::kTrain, Split::kValidation, Split::kTest}, schema, peers);
  DataOptions& data = experiment.config.data;
  data.memory = is_streamed(data, experiment.train->info()) ? MemoryMode::kStream : MemoryMode::kLoad;
  peers.agree([&] {
    const bool named = experiment.train->vocabulary() || !experiment.train->schema().empty();
    build_model(experiment, experiment.train->info().features, named);
    build_metrics(experiment);
    build_training(experiment);
    check_fit(experiment);
    if (data.bucket_by_length > 0 && experiment.train->info().has_lengths)
      experiment.lengths = std::make_shared<const std::vector<Scalar>>(experiment.train->lengths());
  });
  return experiment;
}

void build_model(Experiment& experiment, const Shape& input, bool named) {
  const Config& config = experiment.config;
  experiment.loss = make_loss(config);
  experiment.model = std::make_unique<Model>(config.model, input, experiment.loss->form().link);
  experiment.loss = over_positions(std::move(experiment.loss), experiment.model->output(), named);
  experiment.normaliser = std::make_unique<Normaliser>(config.data.mean, config.data.std, input);
  refuse_threshold(experiment);
}

void open_evaluated(Experiment& experiment, const std::set<Split>& splits, const std::string& schema,
                    PeerGroup& peers) {
  const Config& of_run = experiment.config;
  std::set<Split> wanted = splits;
  // A part that is held back comes out of the training data.
  if (splits.contains(Split::kValidation) && validation_part(of_run.data)) wanted.insert(Split::kTrain);
  if (splits.contains(Split::kTest) && !of_run.data.test_part.empty()) wanted.insert(Split::kTrain);
  if (of_run.eval.class_weights && is_balanced(of_run.train.class_weights)) {
    wanted.insert(Split::kTrain);  // its classes are counted
  }
  open_data(experiment, wanted, schema, peers);
  // It comes with the training data, whose classes are counted.
  if (!splits.contains(Split::kValidation)) experiment.validation.reset();
  if (!splits.contains(Split::kTest)) experiment.test.reset();
  peers.agree([&] {
    build_metrics(experiment);
    check_fit(experiment);
  });
}

std::vector<Range> parts_of_model(const Model& model, const DistOptions& distribute) {
  return divide_model(model, distribute.stages, distribute.cut, distribute.schedule.chunks);
}

std::vector<std::unique_ptr<Model>> Experiment::divided(const DistOptions& distribute) const {
  if (distribute.stages == 1 || distribute.stages == kAutoStages) return {};
  return stages_of(parts_of_model(*model, distribute), distribute.stages);
}

std::vector<std::unique_ptr<Model>> Experiment::stages_of(std::span<const Range> parts, Index count) const {
  std::vector<std::unique_ptr<Model>> models;
  for (const std::vector<Range>& chunks : chunks_of_stages(parts, count)) {
    models.push_back(std::make_unique<Model>(config.model, *model, std::span(chunks)));
  }
  return models;
}

std::vector<const RecordSource*> Experiment::sources() const {
  std::vector<const RecordSource*> all;
  for (const RecordSource* source : {train.get(), validation.get(), test.get()}) {
    if (source != nullptr) all.push_back(source);
  }
  return all;
}

std::vector<LabelScale> Experiment::scales() const {
  const std::vector<const RecordSource*> opened = sources();
  return opened.empty() ? std::vector<LabelScale>() : label_scales(*opened.front());
}

std::vector<double> Experiment::characters() const {
  const std::vector<const RecordSource*> opened = sources();
  const auto vocabulary = opened.empty() ? nullptr : opened.front()->vocabulary();
  return vocabulary ? vocabulary->characters() : std::vector<double>();
}

FitQuestion Experiment::fit(const RecordSource& source) const {
  const std::string& preset = config.model.preset;
  const char* const by_default = config.given.contains("model.outputs") ? "" : " (the default)";
  return {.data = source.info(),
          .model = *model,
          .form = loss->form(),
          .loss = config.loss.loss,
          .preset = preset.empty() ? ""
                                   : fmt::format("model.preset '{}' with model.outputs = {}{}", preset,
                                                 config.model.outputs, by_default),
          .probabilities = loss->takes_probabilities(),
          .leaves_out = loss->takes_missing_targets(),
          .lengths = !config.data.train_lengths.empty()};
}

TargetRule Experiment::target_rule() const {
  return lockstep::target_rule(*loss, *model, *normaliser);
}

Measure Experiment::deciding_measure() const {
  const bool has_accuracy = loss->targets() != TargetKind::kValue;
  return {config.train.early_stopping_metric, metrics->names(), has_accuracy};
}

Index Experiment::classes() const {
  return loss->targets() == TargetKind::kClass ? outputs() : 2;
}

bool Experiment::weighs_classes(Split split) const {
  return !config.train.class_weights.empty() && (split == Split::kTrain || config.eval.class_weights);
}

std::vector<Scalar> Experiment::class_weights(PeerGroup& peers) const {
  if (!is_balanced(config.train.class_weights)) return stated_class_weights;
  const std::vector<Index> counts = count_classes(*train, target_rule(), classes(), peers);
  const std::string lacks = describe_unbalanced(counts, train->info());
  std::string unknown = lacks;
  // A class may have records that are all held back.
  if (!lacks.empty() && validation_part(config.data)) {
    unknown = "";
    if (validation) {
      std::vector<Index> all = count_classes(*validation, target_rule(), classes(), peers);
      std::ranges::transform(all, counts, all.begin(), std::plus<>());
      unknown = describe_unbalanced(all, train->info());
    }
  }
  std::vector<Scalar> weights;
  peers.agree([&] {
    if (!unknown.empty()) {
      throw DataError(
          unknown +
          "has no weight: leave its output out of the model, or give a number for each class instead");
    }
    weights = balance_classes(counts);
  });
  if (peers.rank() == 0) {
    if (!lacks.empty()) {
      log_warning(
          "{}is not learned, and counts once: the others count alike; stratified parts have some of each "
          "class",
          lacks);
    }
    log_info("balanced class weights: {}",
             describe_class_weights(weights, counts, train->info(),
                                    loss->form().positions > 0 ? "positions" : "records"));
  }
  return weights;
}

UpdateRules Experiment::update_rules(Index stage) const {
  UpdateRules rules = lockstep::update_rules(*model, config.optimizer);
  const std::vector<ParamInfo>& all = model->layout().params;
  std::vector<TensorMultipliers> own;
  for (const ParamInfo& param : model_of(stage).layout().params) {
    own.push_back(at(rules.multipliers, std::ranges::find(all, param.name, &ParamInfo::name) - all.begin()));
  }
  rules.multipliers = std::move(own);
  return rules;
}

// The plan of an experiment.

RunPlan Experiment::plan(const Config& other, Index world, const std::vector<Index>& node_sizes) const {
  Config planned = other;
  DistOptions& distribute = planned.distribute;
  const Index own = std::max<Index>(1, std::ssize(stages));
  if (distribute.stages == kAutoStages) distribute.stages = own;
  const bool divided_alike = distribute.stages == own && distribute.cut == config.distribute.cut &&
                             distribute.schedule.chunks == config.distribute.schedule.chunks;
  std::vector<std::unique_ptr<Model>> others;
  if (!divided_alike) others = divided(distribute);
  return make_run_plan(plan_request(planned, divided_alike ? stages : others, world, node_sizes));
}

std::string Experiment::positive_class() const {
  const TargetKind targets = loss->form().targets;
  const bool yes_or_no = targets == TargetKind::kBinary && outputs() == 1;
  const Index classes = yes_or_no ? 2 : targets == TargetKind::kClass ? outputs() : 0;
  return positive_class_of(classes, train->info().class_names);
}

RunPlanRequest Experiment::plan_request(const Config& other, std::span<const std::unique_ptr<Model>> parts,
                                        Index world, const std::vector<Index>& node_sizes) const {
  std::shared_ptr<const std::vector<Chunk>> streamed;
  if (config.data.memory == MemoryMode::kStream) {
    const std::span<const Chunk> chunks = train->chunks();
    streamed = std::make_shared<const std::vector<Chunk>>(chunks.begin(), chunks.end());
  }
  std::vector<OptimizerMemory> stage_optimizers;
  for (const std::unique_ptr<Model>& stage : parts)
    stage_optimizers.emplace_back(*optimizer, stage->layout());
  Index evaluation_rows = 0;
  Index evaluation_sets = 0;
  for (const RecordSource* source : {validation.get(), test.get()}) {
    if (source == nullptr) continue;
    evaluation_rows += source->info().rows;
    ++evaluation_sets;
  }
  return {.train = other.train,
          .data = other.data,
          .distribute = other.distribute,
          .schedule = other.schedule,
          .model = *model,
          .stages = parts,
          .seed = static_cast<std::uint64_t>(other.run.seed),
          .rows = train->info().rows,
          .starts = train->info().starts,
          .record_bytes = train->info().record_bytes,
          .streamed = streamed,
          .target_columns = train->info().target_columns,
          .weighted = train->info().weighted || weighs_classes(Split::kTrain),
          .has_lengths = train->info().has_lengths,
          .of_positions = loss->form().positions > 0,
          .lengths = lengths,
          .positive = positive_class(),
          .optimizer = {*optimizer, model->layout()},
          .stage_optimizers = stage_optimizers,
          .evaluation_rows = evaluation_rows,
          .evaluation_sets = evaluation_sets,
          .evaluation_batch = other.eval.batch,
          .evaluation_rankings = metrics->needs().rankings,
          .saves = other.checkpoint.every != "never",
          .keeps_best = keeps_best(other),
          .multipliers = describe_multipliers(*model, other.optimizer),
          .world = world,
          .node_sizes = node_sizes};
}

}  // namespace lockstep
