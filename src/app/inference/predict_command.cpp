#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/predictions.h"
#include "app/setup/run_config.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/data/table/schema/kept_columns.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

void refuse_two(const PredictionView& request) {
  error_if(request.top > 0 && request.probabilities,
           "--proba writes the probabilities of all classes, --top those of a few: give one of them");
  error_if(request.threshold && (request.top > 0 || request.probabilities),
           "--threshold decides which class is written, and {} writes no such class: give one of them",
           request.top > 0 ? "--top" : "--proba");
}

void check_input(const CommandLine& line, const RecordSource& source, const TrainedModel& trained) {
  const Shape& found = source.info().features;
  const Shape& wanted = trained.model->input();
  error_if<DataError>(found != wanted,
                      "--input '{}' has records of the shape {}, but the model of '{}' takes {}: give "
                      "records like those that it was trained on",
                      line.text("input"), to_string(found), line.text("model"), to_string(wanted));
  if (trained.loss->form().positions == 0) return;
  error_if(line.has("keep"),
           "--keep: each row is a position of a record, whose numbers stand beside it: leave --keep out");
  error_if<DataError>(
      !source.skipped().empty(),
      "'{}': {} cannot be read, and positions of others would have a wrong record: mend the input",
      line.text("input"), plural(std::ssize(source.skipped()), "record"));
}

// Refused before anything is read.
void check_files(const CommandLine& line, const PredictRequest& request, const DataOptions& data) {
  const PredictionFileEntry& output = choose_prediction_file(request.path, request.format);
  const FormatEntry& input = format_of_input(line.text("input"), data);
  error_if(line.has("lengths") && std::ranges::count(input.options, "data.train_lengths") == 0,
           "--lengths: records of the format {} have none", input.name);
  error_if(request.keep && kind_of(data).forecasts,
           "--keep: the rows of a forecast lie behind those of the input; series and time stand beside them");
  if (request.keep) parse_column_names("--keep", *request.keep);
  error_if(request.keep && input.name != "csv",
           "--keep: only tables have columns with names, and '{}' is of the format {}", line.text("input"),
           input.name);
  for (const char* flag : {"keep", "top", "threshold"}) {
    error_if(line.has(flag) && !output.has_texts,
             "--{}: {} holds numbers only, no texts and classes: write CSV or JSON lines (--format csv, "
             "--format jsonl)",
             flag, output.name);
  }
}

// Checks the view against the model, and sets what follows from it.
void complete_view(PredictRequest& request, const TrainedModel& trained) {
  PredictionView& view = request.view;
  const OutputForm form = trained.loss->form();
  check_view(view, form, trained.outputs());
  view.outputs_only = !view.probabilities && !choose_prediction_file(request.path, request.format).has_texts;
  const bool decides_class = has_one_yes(form, trained.outputs()) && !view.threshold && !view.probabilities &&
                             view.top == 0 && !view.outputs_only;
  if (decides_class) view.threshold = trained.threshold();
}

// Errors: AgreedError unless they are allowed.
void report_bad_rows(const CommandLine& line, const WrittenRows& written, Index rank) {
  const BadRows& bad = written.bad;
  if (bad.count == 0) return;
  const std::string found = fmt::format(
      "{} of {} have predictions that are not finite numbers, the first of them row {}: {} has them as "
      "they are. The numbers of the input are too large for the model, or the weights of '{}' are bad",
      with_commas(bad.count), plural(written.rows, "row"), bad.first, describe_output(line.text("output")),
      line.text("model"));
  if (!line.has("allow-nan")) throw AgreedError(found + "; --allow-nan accepts them", kExitData);
  if (rank == 0) log_warning("{}", found);
}

}  // namespace

PredictRequest read_predict_request(const CommandLine& line) {
  PredictRequest request{
      .path = line.text("output"),
      .format = line.text("format"),
      .keep = line.value("keep"),
      .view = {.probabilities = line.has("proba"), .top = line.count("top", {1, 1'000'000'001}, 0)}};
  if (line.value("threshold")) request.view.threshold = line.number("threshold", {0, 1}, 0);
  refuse_two(request.view);
  return request;
}

int predict_command(Communicator& comm, const CommandLine& line) {
  const Stopwatch watch;
  PredictRequest request = agree(comm, [&] { return read_predict_request(line); });
  FinishedRun run = open_finished_run(comm, line);
  std::optional<TrainedModel> trained;
  agree(comm, [&] {
    if (comm.rank() == 0) check_files(line, request, run.config.data);
    trained.emplace(std::move(run), comm.size(), comm.rank());
    complete_view(request, *trained);
  });
  RankPeerGroup peers(comm);
  if (is_standard_input(line.text("input"))) spool_standard_input(comm);
  DataOptions data = trained->config.data;
  data.text.cache = token_directory(trained->config);
  const std::unique_ptr<RecordSource> source = open_input({.data = data,
                                                           .input = line.text("input"),
                                                           .schema = trained->schema(),
                                                           .lengths = line.value("lengths").value_or(""),
                                                           .peers = peers});
  agree(comm, [&] { check_input(line, *source, *trained); });
  const RecordSource* const sources[] = {source.get()};
  refuse_different_data(comm, sources);
  log_notes(sources);
  if (comm.rank() == 0 && !trained->config.data.train_lengths.empty() && !source->info().has_lengths)
    log_warning(
        "the model was trained with lengths, and --lengths is not given: all {} positions of a record count",
        source->info().features.dims.front());
  const WrittenRows written = write_predictions(comm, *trained, *source, request);
  const bool of_positions = trained->loss->form().positions > 0;
  if (comm.rank() == 0 && written.crossed > 0)
    log_info("{}", describe_crossed(written.crossed, of_positions));
  const DatasetInfo& input = source->info();
  log_info("predicted {} of {} in {}: {}",
           input.has_lengths && of_positions
               ? fmt::format("the positions of {}", plural(input.rows, "record"))
               : plural(written.rows, "row"),
           line.text("input"), human_seconds(watch.seconds()), describe_output(line.text("output")));
  report_bad_rows(line, written, comm.rank());
  return 0;
}

}  // namespace lockstep
