#include <fmt/format.h>

#include <optional>

#include "app/commands.h"
#include "app/setup/data_notes.h"
#include "app/setup/outputs.h"
#include "app/setup/precision.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/file_list.h"
#include "lockstep/data/format.h"
#include "lockstep/data/table/schema/kept_columns.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

// *Collective.*
std::unique_ptr<RecordSource> open_input(const CommandLine& line, const DataOptions& data,
                                         const std::string& schema, PeerGroup& peers) {
  const FormatEntry* format = nullptr;
  peers.agree([&] { format = &format_of_input(line.input, data); });
  return format->open_input({data, line.input, peers, schema});
}

void check_input(const CommandLine& line, const Shape& found, const Shape& wanted) {
  if (found == wanted) return;
  throw DataError(
      fmt::format("--input '{}' has records of the shape {}, but the model of '{}' takes {}: give records "
                  "like those that it was trained on",
                  line.input, to_string(found), line.model, to_string(wanted)));
}

// Refused before anything is read.
void check_files(const CommandLine& line, const DataOptions& data) {
  const PredictionFileEntry& output = choose_prediction_file(line.output, line.format);
  const FormatEntry& input = format_of_input(line.input, data);
  check_outputs(line, files_read(line));
  if (line.predict.keep) parse_column_names("--keep", *line.predict.keep);
  if (line.predict.keep && !output.has_texts) {
    throw ConfigError(
        fmt::format("--keep: {} holds numbers only: write CSV or JSON lines (--format csv, --format jsonl)",
                    output.name));
  }
  if (line.predict.keep && input.name != "csv") {
    throw ConfigError(fmt::format("--keep: only tables have columns with names, and '{}' is of the format {}",
                                  line.input, input.name));
  }
  if (line.predict.top > 0 && !output.has_texts) {
    throw ConfigError(
        fmt::format("--top: {} holds numbers only, and no classes: write CSV or JSON lines (--format csv, "
                    "--format jsonl)",
                    output.name));
  }
  if (line.predict.threshold && !output.has_texts) {
    throw ConfigError(fmt::format(
        "--threshold decides the class, and {} holds probabilities only: write CSV or JSON lines (--format "
        "csv, --format jsonl)",
        output.name));
  }
}

// All that a prediction needs but the other ranks.
struct Inference {
  std::optional<StageGrid> grid = {};  ///< stages of the ranks
  TrainedModel trained;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Normaliser> normaliser;
  PredictionView view;
  std::vector<LabelScale> label_scales = {};
  std::vector<TargetLabel> labels = {};
  std::optional<TableSchema> table = {};  ///< schema of the table that the model was trained on
};

// The view that the flags name. Errors: ConfigError.
PredictionView view_of(const CommandLine& line, const OutputForm& form, Index outputs) {
  PredictionView view{.probabilities = line.predict.probabilities,
                      .top = line.predict.top,
                      .threshold = line.predict.threshold};
  check_view(view, form, outputs);
  view.outputs_only = !view.probabilities && !choose_prediction_file(line.output, line.format).has_texts;
  return view;
}

// Whether the model says yes or no, and the class is written.
bool decides_class(const Inference& inference, Index outputs) {
  const PredictionView& view = inference.view;
  return has_one_yes(inference.loss->form(), outputs) && !view.threshold && !view.probabilities &&
         view.top == 0 && !view.outputs_only;
}

// `ranks`: all of them. Local.
Inference prepare(const CommandLine& line, const Config& config, const RunDirectory& directory,
                  const Communicator& ranks) {
  Inference inference;
  inference.grid = inference_grid(config, ranks.size(), ranks.rank());
  inference.trained = load_trained_model(directory, config, *inference.grid, ranks.rank());
  const Shape& input = inference.trained.model->input();
  inference.loss = find_entry(loss_catalog(), "loss", config.loss.loss).make(config.loss);
  inference.normaliser = std::make_unique<Normaliser>(config.data.mean, config.data.std, input.size());
  const Index outputs = inference.trained.model->output().size();
  refuse_threshold(config, inference.loss->form(), outputs);
  inference.view = view_of(line, inference.loss->form(), outputs);
  if (decides_class(inference, outputs))
    inference.view.threshold = threshold_of(directory, config, ranks.rank());
  return inference;
}

// The file of the predictions with all that writes it.
class PredictionOutput {
 public:
  PredictionOutput(const CommandLine& line, const Config& config, const Inference& inference,
                   const RecordSource& source)
      : table_(inference.loss->form(), inference.trained.model->output().size(), inference.labels,
               inference.view) {
    if (line.predict.keep) {
      kept_.emplace(source.files(), config.data.table, parse_column_names("--keep", *line.predict.keep),
                    inference.table ? &*inference.table : nullptr);
    }
    file_ = choose_prediction_file(line.output, line.format)
                .make({.path = line.output,
                       .rows = source.info().rows + std::ssize(source.skipped()),
                       .columns = {table_.columns().begin(), table_.columns().end()},
                       .kept = kept_ ? &*kept_ : nullptr});
    lines_.emplace(table_, *file_, source.skipped());
  }

  PredictionLines& lines() { return *lines_; }

 private:
  PredictionTable table_;
  std::optional<KeptColumns> kept_;
  std::unique_ptr<PredictionFile> file_;
  std::optional<PredictionLines> lines_;
};

// *Collective.* Gives the bad rows, on all ranks. Errors: AgreedError.
BadRows write_predictions(Communicator& comm, const CommandLine& line, const Config& config,
                          const Inference& inference, const RecordSource& source) {
  ThreadTeam team(static_cast<int>(config.train.threads));
  std::optional<Pipeline> pipeline;
  if (inference.trained.stage) pipeline.emplace(comm, *inference.grid);
  Prediction prediction({.comm = comm,
                         .model = inference.trained.run(),
                         .form = inference.loss->form(),
                         .normaliser = *inference.normaliser,
                         .team = team,
                         .batch = config.eval.batch,
                         .label_scales = inference.label_scales,
                         .temperature = inference.trained.temperature,
                         .pipeline = pipeline ? &*pipeline : nullptr},
                        source);
  std::optional<PredictionOutput> output;  // only rank 0 has one
  agree(comm, [&] {
    if (comm.rank() == 0) output.emplace(line, config, inference, source);
  });
  prediction.run(inference.trained.values(), [&](const ConstMatrix& rows) { output->lines().append(rows); });
  agree(comm, [&] {
    if (output) output->lines().finish();
  });
  BadRows bad = output ? output->lines().bad_rows() : BadRows();
  comm.broadcast(as_buffer(std::as_writable_bytes(std::span(&bad, 1))), 0);
  return bad;
}

// Errors: AgreedError unless they are allowed.
void report_bad_rows(const CommandLine& line, const BadRows& bad, Index rows, Index rank) {
  if (bad.count == 0) return;
  const std::string found = fmt::format(
      "{} of {} rows have predictions that are not finite numbers, the first of them row {}: {} has them as "
      "they are. The numbers of the input are too large for the model, or the weights of '{}' are bad",
      with_commas(bad.count), with_commas(rows), bad.first, describe_output(line.output), line.model);
  if (!line.allow_nan) throw AgreedError(found + "; --allow-nan accepts them", kExitData);
  if (rank == 0) log_warning("{}", found);
}

}  // namespace

int predict_command(Communicator& comm, const CommandLine& line) {
  const Stopwatch watch;
  RunDirectory directory;
  agree(comm, [&] { directory = open_run_directory(line.model); });
  const Config config =
      load_config_together(comm, with_config_of_run(line, directory), {.ranks = comm.size()}).config;
  Inference inference;
  agree(comm, [&] {
    if (comm.rank() == 0) check_files(line, config.data);
    refuse_missing_precision(config);
    inference = prepare(line, config, directory, comm);
  });
  refuse_differences(comm, config);
  RankPeerGroup peers(comm);
  const std::string schema = load_schema_together(comm, directory);
  agree(comm, [&] {
    inference.label_scales = read_label_scales(schema);
    inference.labels = read_target_labels(schema);
    inference.table = read_table_schema(schema);
  });
  if (is_standard_input(line.input)) spool_standard_input(comm);
  const std::unique_ptr<RecordSource> source = open_input(line, config.data, schema, peers);
  const DatasetInfo& input = source->info();
  agree(comm, [&] { check_input(line, input.features, inference.trained.model->input()); });
  const RecordSource* const sources[] = {source.get()};
  refuse_different_data(comm, sources);
  log_notes(sources);
  const BadRows bad = write_predictions(comm, line, config, inference, *source);
  log_info("predicted {} rows of {} in {}: {}", with_commas(input.rows), line.input,
           human_seconds(watch.seconds()), describe_output(line.output));
  report_bad_rows(line, bad, input.rows, comm.rank());
  return 0;
}

}  // namespace lockstep
