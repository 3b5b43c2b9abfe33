// trainer importance: which columns a trained model needs, and how its predictions follow one of them.
#include <fmt/format.h>

#include <algorithm>

#include "app/commands.h"
#include "app/setup/data_notes.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "app/setup/precision.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/agree.h"
#include "lockstep/report/tables/evaluation_tables.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {
namespace {

// The set that a flag names; else that of validation where the run has one.
Split choose_split(const LoadedConfig& loaded) {
  const auto names = [&](Split split) {
    const std::string key = "data." + to_string(split);
    return std::ranges::any_of(loaded.flagged,
                               [&](const std::string& flag) { return flag.starts_with(key); });
  };
  const bool validation = names(Split::kValidation);
  const bool test = names(Split::kTest);
  if (validation && test) {
    throw ConfigError(
        "--data.validation and --data.test are both given: the columns of one set are permuted");
  }
  if (test || validation) return test ? Split::kTest : Split::kValidation;
  return has_validation(loaded.config) ? Split::kValidation : Split::kTest;
}

// The measure that is asked for, which the evaluation then computes.
std::string choose_measure(const CommandLine& line, Config& config) {
  const std::string name = line.metric.empty() ? config.train.early_stopping_metric : line.metric;
  if (name == "loss" || name == "accuracy") return name;
  config.eval.metrics = {name};
  return name;
}

void check_measure(const std::string& name, const Loss& loss) {
  if (name != "accuracy" || loss.targets() != TargetKind::kValue) return;
  throw ConfigError(
      "--metric accuracy is not defined for predictions of numbers: choose loss, r2 or another metric");
}

// The columns of a set, whose records must be rows of features.
std::vector<FeatureColumn> columns_of(const Experiment& experiment, const RecordSource& source,
                                      const std::string& schema) {
  const Shape& features = source.info().features;
  if (features.dims.size() > 1) {
    throw ConfigError(fmt::format(
        "records of '{}' have the shape {}: importance permutes columns, and one pixel of an image "
        "says nothing by itself",
        source.info().name, to_string(features)));
  }
  return feature_columns(schema, experiment.model->input().size());
}

const FeatureColumn& find_column(const std::vector<FeatureColumn>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &FeatureColumn::name);
  if (found != columns.end()) return *found;
  std::vector<std::string> names;
  for (const FeatureColumn& column : columns) names.push_back(column.name);
  throw ConfigError(fmt::format("--partial: the model has no column {}{} (columns: {})", in_quotes(name),
                                suggestion(name, names), listed(names)));
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

bool names_data(const std::set<std::string>& flagged) {
  return std::ranges::any_of(flagged, [](const std::string& key) { return key.starts_with("data."); });
}

// All that importance and dependence need.
struct ImportanceInputs {
  Communicator& comm;
  RunDirectory directory;
  bool own_data = false;  ///< the set is that of the run
  const CommandLine& line;
  const Experiment& experiment;
  Split split;
  const RecordSource& source;
  ModelValues values;
  Scalar temperature;
  std::vector<FeatureColumn> columns;
  std::string schema;
  std::string measure;
  ThreadTeam& team;
};

// *Collective.* Rank 0 prints the answer, and writes it where that is asked for.
template <class Result>
void report(const ImportanceInputs& request, const Result& result) {
  agree(request.comm, [&] {
    if (request.comm.rank() > 0) return;
    print_report(request.line, to_text(result));
    if (!request.line.csv.empty()) write_output(request.line.csv, to_csv(result));
    if (!request.line.json.empty()) write_output(request.line.json, to_json(result));
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

void show_importance(const ImportanceInputs& request) {
  const Experiment& experiment = request.experiment;
  RankPeerGroup peers(request.comm);
  std::vector<Scalar> class_weights;
  if (experiment.weighs_classes(request.split)) class_weights = experiment.class_weights(peers);
  const EvaluationContext context{.comm = request.comm,
                                  .model = *experiment.model,
                                  .loss = *experiment.loss,
                                  .normaliser = *experiment.normaliser,
                                  .team = request.team,
                                  .options = experiment.config.eval,
                                  .metrics = *experiment.metrics,
                                  .class_weights = class_weights};
  const Measure measure(request.measure, {request.measure}, true);
  const Importance importance = permutation_importance(context, request.source, request.split, request.values,
                                                       {.columns = request.columns,
                                                        .measure = measure,
                                                        .repeats = request.line.repeats,
                                                        .seed = experiment.seed(),
                                                        .temperature = request.temperature});
  const ImportanceResult result{.model = request.line.model,
                                .set = to_string(request.split),
                                .measure = request.measure,
                                .importance = importance};
  report(request, result);
  if (request.comm.rank() == 0 && request.own_data) keep_for_page(request.directory, to_json(result));
}

void show_dependence(const ImportanceInputs& request) {
  const Experiment& experiment = request.experiment;
  const FeatureColumn* column = nullptr;
  std::vector<LabelScale> scales;
  agree(request.comm, [&] {
    column = &find_column(request.columns, request.line.partial);
    scales = read_label_scales(request.schema);
  });
  const std::vector<Scalar> found = read_feature(request.source, column->features.begin, request.comm);
  std::vector<ColumnValue> grid;
  agree(request.comm, [&] { grid = column_values(*column, found, request.line.points); });
  const PredictionContext context{.comm = request.comm,
                                  .model = *experiment.model,
                                  .form = experiment.loss->form(),
                                  .normaliser = *experiment.normaliser,
                                  .team = request.team,
                                  .batch = experiment.config.eval.batch,
                                  .label_scales = scales,
                                  .temperature = request.temperature};
  std::vector<std::vector<double>> means =
      partial_dependence(context, request.source, request.values, column->features, grid);
  const DatasetInfo& info = request.source.info();
  report(request, DependenceResult{.model = request.line.model,
                                   .set = to_string(request.split),
                                   .samples = info.rows,
                                   .column = column->name,
                                   .outputs = output_names(experiment, info),
                                   .grid = std::move(grid),
                                   .means = std::move(means)});
}

}  // namespace

int importance_command(Communicator& comm, const CommandLine& line) {
  RunDirectory directory;
  agree(comm, [&] { directory = open_run_directory(line.model); });
  LoadedConfig loaded =
      load_config_together(comm, with_config_of_run(line, directory), {.ranks = comm.size()});
  Split split = Split::kValidation;
  std::string measure;
  Shape input;
  agree(comm, [&] {
    if (comm.rank() == 0) check_outputs(line, files_read(line));
    refuse_missing_precision(loaded.config);
    split = choose_split(loaded);
    measure = choose_measure(line, loaded.config);
    input = ModelFile(directory.model()).input();
  });
  refuse_differences(comm, loaded.config);
  RankPeerGroup peers(comm);
  const std::string schema = load_schema_together(comm, directory);
  const Experiment experiment = make_evaluation(loaded, {split}, input, schema, peers);
  const RecordSource* source = split == Split::kTest ? experiment.test.get() : experiment.validation.get();
  AlignedBuffer<Scalar> stored;
  Scalar temperature = 1;
  std::vector<FeatureColumn> columns;
  agree(comm, [&] {
    if (source == nullptr) {
      throw ConfigError(
          "the run has no validation and no test set: give --data.test FILE (and "
          "--data.test_labels)");
    }
    check_measure(measure, *experiment.loss);
    columns = columns_of(experiment, *source, schema);
    stored = load_stored(directory, *experiment.model);
    temperature = load_temperature(directory, loaded.config);
  });
  refuse_different_data(comm, experiment.sources());
  log_notes(experiment.sources());
  ThreadTeam team(static_cast<int>(experiment.config.train.threads));
  const ImportanceInputs request{.comm = comm,
                                 .directory = directory,
                                 .own_data = !names_data(loaded.flagged),
                                 .line = line,
                                 .experiment = experiment,
                                 .split = split,
                                 .source = *source,
                                 .values = stored_values(*experiment.model, stored.span()),
                                 .temperature = temperature,
                                 .columns = std::move(columns),
                                 .schema = schema,
                                 .measure = measure,
                                 .team = team};
  if (line.partial.empty()) {
    show_importance(request);
  } else {
    show_dependence(request);
  }
  return 0;
}

}  // namespace lockstep
