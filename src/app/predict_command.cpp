#include <fmt/format.h>

#include <optional>

#include "commands.h"
#include "data_notes.h"
#include "guards.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/format.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/prediction_lines.h"
#include "outputs.h"
#include "precision.h"
#include "startup.h"
#include "trained_model.h"

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
  choose_prediction_file(line.output);
  format_of_input(line.input, data);
  check_outputs(line, files_read(line));
}

// All that a prediction needs but the other ranks.
struct Inference {
  TrainedModel trained;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Normaliser> normaliser;
  std::vector<LabelScale> label_scales = {};
};

Inference prepare(const Config& config, const RunDirectory& directory) {
  Inference inference;
  inference.trained = load_trained_model(directory, config);
  const Shape& input = inference.trained.model->input();
  inference.loss = find_entry(loss_catalog(), "loss", config.loss.loss).make(config.loss);
  inference.normaliser = std::make_unique<Normaliser>(config.data.mean, config.data.std, input.size());
  return inference;
}

std::unique_ptr<PredictionFile> make_file(const CommandLine& line, const Inference& inference, Index rows) {
  const Index outputs = inference.trained.model->output().size();
  return choose_prediction_file(line.output)
      .make({.path = line.output,
             .rows = rows,
             .columns = prediction_columns(inference.loss->form(), outputs)});
}

// *Collective.* Gives the bad rows, on all ranks. Errors: AgreedError.
BadRows write_predictions(Communicator& comm, const CommandLine& line, const Config& config,
                          const Inference& inference, const RecordSource& source) {
  ThreadTeam team(static_cast<int>(config.train.threads));
  Prediction prediction({.comm = comm,
                         .model = *inference.trained.model,
                         .form = inference.loss->form(),
                         .normaliser = *inference.normaliser,
                         .team = team,
                         .batch = config.eval.batch,
                         .label_scales = inference.label_scales},
                        source);
  std::unique_ptr<PredictionFile> file;  // only rank 0 has one
  agree(comm, [&] {
    if (comm.rank() > 0) return;
    file = make_file(line, inference, source.info().rows + std::ssize(source.skipped()));
  });
  std::optional<PredictionLines> lines;
  if (file) lines.emplace(*file, source.skipped());
  prediction.run(inference.trained.values(), [&](const ConstMatrix& rows) { lines->append(rows); });
  agree(comm, [&] {
    if (lines) lines->finish();
  });
  BadRows bad = lines ? lines->bad_rows() : BadRows();
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
    inference = prepare(config, directory);
  });
  refuse_differences(comm, config);
  RankPeerGroup peers(comm);
  const std::string schema = load_schema_together(comm, directory);
  agree(comm, [&] { inference.label_scales = read_label_scales(schema); });
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
