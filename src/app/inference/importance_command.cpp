// trainer importance: which columns a trained model needs, and how its predictions follow one of them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

// The set that a flag names; else that of validation where the run has one.
Split choose_split(const Config& config) {
  const std::set<Split> named = named_splits(config);
  error_if(named.size() > 1,
           "--data.validation and --data.test are both given: the columns of one set are permuted");
  if (!named.empty()) return *named.begin();
  return has_validation(config) ? Split::kValidation : Split::kTest;
}

// The metrics with which an evaluation has the measure.
std::unique_ptr<MetricSet> metrics_with(const std::string& measure, const Experiment& experiment) {
  const OutputForm form = experiment.loss->form();
  const bool always = measure == "loss" || measure == "accuracy";
  error_if(measure == "accuracy" && form.targets == TargetKind::kValue,
           "--metric accuracy is not defined for predictions of numbers: choose loss, r2 or another metric");
  return std::make_unique<MetricSet>(always ? experiment.config.eval.metrics : std::vector{measure}, form,
                                     experiment.outputs(), experiment.scales());
}

// The columns of a set, whose records must be rows of features.
std::vector<FeatureColumn> columns_of(const TrainedModel& trained, const RecordSource& source) {
  const Shape& features = source.info().features;
  error_if(
      features.dims.size() > 1,
      "records of '{}' have the shape {}: importance permutes columns, and one {} says nothing by itself",
      source.info().name, to_string(features),
      features.sequence ? "number of a sequence" : "pixel of an image");
  return feature_columns(trained.schema(), trained.model->input().size());
}

const FeatureColumn& find_column(const std::vector<FeatureColumn>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &FeatureColumn::name);
  if (found != columns.end()) return *found;
  const std::vector<std::string> names = catalog_names(columns);
  throw ConfigError("--partial: the model has no column {}{} (columns: {})", in_quotes(name),
                    suggestion(name, names), listed(names));
}

// "probability of yes": what the values of a prediction are.
std::vector<std::string> output_names(const Experiment& experiment, const DatasetInfo& info) {
  const OutputForm form = experiment.loss->form();
  const PredictionColumns columns = prediction_columns(form, experiment.model->output().size());
  const std::vector<std::string>& classes = info.class_names;
  const bool is_probability = form.link == Link::kSoftmax || form.link == Link::kLogit;
  const char* noun = is_probability                       ? "probability"
                     : form.targets == TargetKind::kValue ? "prediction"
                                                          : "output";
  std::vector<std::string> names;
  for (Index i = 0; i < columns.values; ++i) {
    const Index number = form.targets == TargetKind::kBinary && columns.values == 1 ? 1 : i;
    const auto levels = std::ssize(columns.quantiles);
    if (levels > 0) {
      names.push_back(fmt::format("{}{:g} quantile",
                                  columns.values > levels ? fmt::format("{}, ", i / levels) : "",
                                  at(columns.quantiles, i % levels)));
    } else if (form.targets == TargetKind::kValue && columns.values == 1) {
      names.emplace_back(noun);
    } else {
      names.push_back(fmt::format(
          "{} of {}", noun, number < std::ssize(classes) ? at(classes, number) : fmt::format("{}", number)));
    }
  }
  return names;
}

// All that importance and dependence need.
struct ImportanceInputs {
  Communicator& comm;
  const CommandLine& line;
  const ImportanceFlags& request;
  Split split;
  const TrainedModel& trained;
  std::string measure = {};
  std::vector<FeatureColumn> columns = {};

  const RecordSource* source() const {
    return split == Split::kTest ? trained.test.get() : trained.validation.get();
  }
};

// *Collective.* Rank 0 prints the answer, and writes it where that is asked for.
template <class Result>
void report(const ImportanceInputs& inputs, const Result& result) {
  agree_on_first(inputs.comm, [&] {
    print_report(inputs.line, to_text(result));
    if (inputs.line.has("csv")) write_output(inputs.line.text("csv"), to_csv(result));
    if (inputs.line.has("json")) write_output(inputs.line.text("json"), to_json(result));
  });
}

// A directory that cannot be written to is no fault of the command; a checkpoint gets nothing.
void keep_for_page(const RunDirectory& directory, const std::string& json) {
  if (!is_there(directory.record())) return;
  try {
    write_file_atomically(directory.importance(), json);
  } catch (const Error& error) {
    log_warning("importance.json is not written, so trainer report does not show this: {}", error.what());
  }
}

void show_importance(const ImportanceInputs& inputs) {
  const TrainedModel& trained = inputs.trained;
  RankPeerGroup peers(inputs.comm);
  std::vector<Scalar> class_weights;
  if (trained.weighs_classes(inputs.split)) class_weights = trained.class_weights(peers);
  ModelRunner runner(inputs.comm, trained);
  const Measure measure(inputs.measure, {inputs.measure}, true);
  const Importance importance = permutation_importance(runner.evaluation(class_weights), *inputs.source(),
                                                       inputs.split, trained.values(),
                                                       {.columns = inputs.columns,
                                                        .measure = measure,
                                                        .repeats = inputs.request.repeats,
                                                        .seed = trained.seed(),
                                                        .temperature = trained.temperature()});
  const ImportanceResult result{.model = inputs.line.text("model"),
                                .set = to_string(inputs.split),
                                .measure = inputs.measure,
                                .importance = importance};
  report(inputs, result);
  const bool names_data = std::ranges::any_of(
      trained.config.flagged, [](const std::string& key) { return key.starts_with("data."); });
  if (inputs.comm.rank() == 0 && !names_data) keep_for_page(trained.directory(), to_json(result));
}

void show_dependence(const ImportanceInputs& inputs) {
  const TrainedModel& trained = inputs.trained;
  const RecordSource& source = *inputs.source();
  const auto [column, scales] = agree(inputs.comm, [&] {
    return std::pair(&find_column(inputs.columns, inputs.request.partial),
                     read_label_scales(trained.schema()));
  });
  const std::vector<Scalar> found = read_feature(source, column->features.begin, inputs.comm);
  std::vector<ColumnValue> grid =
      agree(inputs.comm, [&, shown = column] { return column_values(*shown, found, inputs.request.points); });
  ModelRunner runner(inputs.comm, trained);
  std::vector<std::vector<double>> means =
      partial_dependence(runner.prediction(), scales, source, trained.values(), column->features, grid);
  const DatasetInfo& info = source.info();
  report(inputs, DependenceResult{.model = inputs.line.text("model"),
                                  .set = to_string(inputs.split),
                                  .samples = info.rows,
                                  .column = column->name,
                                  .outputs = output_names(trained, info),
                                  .grid = std::move(grid),
                                  .means = std::move(means)});
}

}  // namespace

// --partial computes partial dependence, and not permutation importance: each has flags that the other
// refuses.
ImportanceFlags read_importance_flags(const CommandLine& line) {
  const ImportanceFlags request{.metric = line.text("metric"),
                                .repeats = line.count("repeats", {1, 1001}, 5),
                                .partial = line.text("partial"),
                                .points = line.count("points", {2, 10'001}, 20)};
  for (const char* flag : {"metric", "repeats", "points"}) {
    const bool of_partial = std::string_view(flag) == "points";
    if (!line.has(flag) || of_partial == line.has("partial")) continue;
    throw ConfigError(of_partial ? "--points belongs to --partial COLUMN: name the column, or leave it out"
                                 : fmt::format("--{} has no effect with --partial: leave out one", flag));
  }
  return request;
}

int importance_command(Communicator& comm, const CommandLine& line) {
  const ImportanceFlags request = agree(comm, [&] { return read_importance_flags(line); });
  FinishedRun run = open_finished_run(comm, line);
  Split split = Split::kValidation;
  std::optional<TrainedModel> trained;
  agree(comm, [&] {
    split = choose_split(run.config);
    trained.emplace(std::move(run));
  });
  RankPeerGroup peers(comm);
  open_evaluated(*trained, {split}, trained->schema(), peers);
  ImportanceInputs inputs{
      .comm = comm, .line = line, .request = request, .split = split, .trained = *trained};
  inputs.measure = request.metric.empty() ? trained->config.train.early_stopping_metric : request.metric;
  agree(comm, [&] {
    trained->metrics = metrics_with(inputs.measure, *trained);
    error_if(inputs.source() == nullptr,
             "the run has no validation and no test set: give --data.test FILE (and --data.test_labels)");
    inputs.columns = columns_of(*trained, *inputs.source());
  });
  const std::vector<const RecordSource*> sources = trained->sources();
  refuse_different_data(comm, sources);
  log_notes(sources);
  if (request.partial.empty()) {
    show_importance(inputs);
  } else {
    show_dependence(inputs);
  }
  return 0;
}

}  // namespace lockstep
