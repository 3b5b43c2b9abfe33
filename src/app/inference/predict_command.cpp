#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/run_config.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/byte_stream.h"
#include "lockstep/data/format.h"
#include "lockstep/data/table/schema/kept_columns.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/data/texts.h"
#include "lockstep/data/time_windows.h"
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

const PredictionFileEntry& prediction_file_of(const CommandLine& line) {
  return choose_prediction_file(line.text("output"), line.text("format"));
}

// *Collective.* The records or, of windows of time, the last one of each series.
std::unique_ptr<RecordSource> open_input(const CommandLine& line, const Config& config,
                                         const std::string& schema, PeerGroup& peers) {
  const DataOptions& data = config.data;
  const FormatEntry* format = nullptr;
  const std::string input = line.text("input");
  peers.agree([&] { format = &format_of_input(input, data); });
  if (data.reads_tokens()) {
    peers.agree([&] {
      error_if(is_standard_input(input),
               "--input -: a text is read from a file: give its path (trainer generate takes a prompt from "
               "standard input)");
    });
    DataOptions opened = data;
    opened.text.cache = token_directory(config);
    return open_input_text(opened, input, schema, peers);
  }
  if (!data.has_time_windows()) {
    return format->open({.options = data,
                         .peers = peers,
                         .schema = schema,
                         .input = input,
                         .lengths = line.value("lengths").value_or("")});
  }
  const DataOptions opened = data_of_files(data);
  return open_last_windows(
      opened, schema,
      [&](Split, const std::string& known, const HoldOut&) {
        return format->open(
            {.options = opened, .peers = peers, .schema = known, .input = input, .labels = true});
      },
      peers);
}

// The series and the time of each step of a forecast.
class ForecastColumns final : public TextColumns {
 public:
  ForecastColumns(const WindowSource& source, const WindowOptions& windows)
      : source_(source), names_(windows.series) {
    names_.push_back(windows.time);
  }
  std::span<const std::string> names() const override { return names_; }
  std::span<const std::string> next() override {
    const Index horizon = source_.windows().horizon;
    cells_ = source_.series_of(next_ / horizon);
    cells_.push_back(source_.time_of(next_ / horizon, next_ % horizon));
    ++next_;
    return cells_;
  }

 private:
  const WindowSource& source_;
  std::vector<std::string> names_;
  std::vector<std::string> cells_;
  Index next_ = 0;
};

// The record and the position of each row, both from 0 on. Rows of padding are left out.
class PositionColumns final : public TextColumns {
 public:
  explicit PositionColumns(Index positions) : positions_(positions) {}
  std::span<const std::string> names() const override { return names_; }
  bool are_numbers() const override { return true; }
  std::span<const std::string> next() override {
    const Index row = rows_.front();
    rows_.pop_front();
    cells_ = {std::to_string(row / positions_), std::to_string(row % positions_)};
    return cells_;
  }

  // The rows of all positions that count, in memory that is valid until the next call.
  ConstMatrix keep(const ConstMatrix& rows) {
    kept_.clear();
    for (Index row = 0; row < rows.rows(); ++row, ++given_) {
      if (is_padding(rows, row)) continue;
      const Scalar* from = rows.data() + row * rows.cols();
      kept_.insert(kept_.end(), from, from + rows.cols());
      rows_.push_back(given_);
    }
    return {kept_.data(), std::ssize(kept_) / rows.cols(), rows.cols()};
  }

 private:
  Index positions_;
  std::vector<std::string> names_{"record", "position"};
  std::vector<std::string> cells_;
  std::vector<Scalar> kept_;
  std::deque<Index> rows_;  // kept, and not asked for yet
  Index given_ = 0;
};

// Rows of forecasts as a row for each position of the horizon, in which a label has its levels side by side.
ConstMatrix by_step(const ConstMatrix& rows, Index horizon, Index levels, std::vector<Scalar>& memory) {
  const Index labels = rows.cols() / horizon / levels;
  memory.clear();
  for (Index row = 0; row < rows.rows(); ++row) {
    for (Index step = 0; step < horizon; ++step) {
      for (Index label = 0; label < labels; ++label) {
        const Scalar* from = rows.data() + row * rows.cols() + (label * horizon + step) * levels;
        memory.insert(memory.end(), from, from + levels);
      }
    }
  }
  return {memory.data(), rows.rows() * horizon, labels * levels};
}

void check_input(const CommandLine& line, const Shape& found, const Shape& wanted) {
  error_if<DataError>(found != wanted,
                      "--input '{}' has records of the shape {}, but the model of '{}' takes {}: give "
                      "records like those that "
                      "it was trained on",
                      line.text("input"), to_string(found), line.text("model"), to_string(wanted));
}

// Refused before anything is read.
void check_files(const CommandLine& line, const PredictRequest& request, const DataOptions& data) {
  const PredictionFileEntry& output = prediction_file_of(line);
  const FormatEntry& input = format_of_input(line.text("input"), data);
  error_if(line.has("lengths") && std::ranges::count(input.options, "data.train_lengths") == 0,
           "--lengths: records of the format {} have none", input.name);
  error_if(request.keep && data.has_time_windows(),
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

// All that a prediction needs but the other ranks.
struct Inference {
  PredictRequest request = {};
  std::optional<TrainedModel> trained = {};
  std::vector<LabelScale> label_scales = {};
  std::vector<TargetLabel> labels = {};
  std::optional<TableSchema> table = {};  ///< schema of the table that the model was trained on

  bool forecasts() const { return table && table->windows; }
  Index horizon() const { return forecasts() ? table->windows->horizon : 1; }
  Index positions() const { return trained->loss->form().positions; }
  // Rows of the file that a record has.
  Index rows_of_record() const { return std::max(horizon(), positions()); }
  // Outputs of the model, or of a position that has targets of its own.
  Index outputs() const { return trained->outputs(); }
  // A label has as many targets as its horizon has positions, and a row one of them.
  std::vector<TargetLabel> labels_of_rows() const {
    if (!forecasts()) return labels;
    std::vector<TargetLabel> of_rows;
    for (const std::size_t i : table->targets()) of_rows.push_back({.name = table->columns[i].name});
    return of_rows;
  }
  std::vector<LabelScale> scales_of_rows() const {
    std::vector<LabelScale> of_rows;
    for (Index i = 0; i < std::ssize(label_scales); i += horizon()) of_rows.push_back(at(label_scales, i));
    return of_rows;
  }
};

// Whether the model says yes or no, and the class is written.
bool decides_class(const Inference& inference, Index outputs) {
  const PredictionView& view = inference.request.view;
  return has_one_yes(inference.trained->loss->form(), outputs) && !view.threshold && !view.probabilities &&
         view.top == 0 && !view.outputs_only;
}

// `ranks`: all of them. Local.
void prepare(Inference& inference, const CommandLine& line, FinishedRun run, const Communicator& ranks) {
  inference.trained.emplace(std::move(run), ranks.size(), ranks.rank());
  const Index outputs = inference.outputs();
  PredictionView& view = inference.request.view;
  check_view(view, inference.trained->loss->form(), outputs);
  view.outputs_only = !view.probabilities && !prediction_file_of(line).has_texts;
  if (decides_class(inference, outputs)) view.threshold = inference.trained->threshold();
}

// The file of the predictions with all that writes it.
class PredictionOutput {
 public:
  PredictionOutput(const CommandLine& line, const Config& config, const Inference& inference,
                   const RecordSource& source)
      : table_(inference.trained->loss->form(), inference.outputs() / inference.horizon(),
               inference.labels_of_rows(), inference.request.view, inference.scales_of_rows()),
        horizon_(inference.horizon()),
        levels_(inference.trained->loss->form().outputs_per_target()) {
    const PredictionFileEntry& entry = prediction_file_of(line);
    if (const auto& keep = inference.request.keep) {
      kept_ = std::make_unique<KeptColumns>(source.files(), config.data.table,
                                            parse_column_names("--keep", *keep),
                                            inference.table ? &*inference.table : nullptr);
    }
    if (inference.forecasts() && entry.has_texts)
      kept_ = std::make_unique<ForecastColumns>(*source.as_windows(), config.data.table.windows);
    error_if(inference.positions() > 0 && kept_,
             "--keep: each row is a position of a record, whose numbers stand beside it: leave --keep out");
    error_if<DataError>(
        inference.positions() > 0 && !source.skipped().empty(),
        "'{}': {} cannot be read, and positions of others would have a wrong record: mend the "
        "input",
        line.text("input"), plural(std::ssize(source.skipped()), "record"));
    if (inference.positions() > 0 && entry.has_texts) {
      auto columns = std::make_unique<PositionColumns>(inference.positions());
      positions_ = columns.get();
      kept_ = std::move(columns);
    }
    file_ =
        entry.make({.path = line.text("output"),
                    .rows = source.info().rows * inference.rows_of_record() + std::ssize(source.skipped()),
                    .positions = inference.positions(),
                    .columns = {table_.columns().begin(), table_.columns().end()},
                    .kept = kept_.get()});
    lines_.emplace(table_, *file_, source.skipped());
  }

  // Rows of predict_rows().
  void append(const ConstMatrix& rows) {
    if (positions_ != nullptr) return lines_->append(positions_->keep(rows));
    lines_->append(horizon_ == 1 ? rows : by_step(rows, horizon_, levels_, steps_));
  }
  PredictionLines& lines() { return *lines_; }

 private:
  PredictionTable table_;
  Index horizon_;  // rows of the file that a row has
  Index levels_;
  std::vector<Scalar> steps_;
  std::unique_ptr<TextColumns> kept_;
  PositionColumns* positions_ = nullptr;  // kept_, where rows are positions
  std::unique_ptr<PredictionFile> file_;
  std::optional<PredictionLines> lines_;
};

// *Collective.* Gives the bad rows, on all ranks. Errors: AgreedError.
BadRows write_predictions(Communicator& comm, const CommandLine& line, const Config& config,
                          const Inference& inference, const RecordSource& source) {
  ModelRunner runner(comm, *inference.trained);
  Prediction prediction(runner.prediction(), source);
  std::optional<PredictionOutput> output;  // only rank 0 has one
  agree(comm, [&] {
    if (comm.rank() == 0) output.emplace(line, config, inference, source);
  });
  prediction.run(inference.trained->values(), [&](const ConstMatrix& rows) { output->append(rows); });
  agree(comm, [&] {
    if (output) output->lines().finish();
  });
  if (comm.rank() == 0 && prediction.crossed() > 0)
    log_info("{}", describe_crossed(prediction.crossed(), inference.positions() > 0));
  BadRows bad = output ? output->lines().bad_rows() : BadRows();
  comm.broadcast(as_buffer(std::as_writable_bytes(std::span(&bad, 1))), 0);
  return bad;
}

// Errors: AgreedError unless they are allowed.
void report_bad_rows(const CommandLine& line, const BadRows& bad, Index rows, Index rank) {
  if (bad.count == 0) return;
  const std::string found = fmt::format(
      "{} of {} have predictions that are not finite numbers, the first of them row {}: {} has them as "
      "they are. The numbers of the input are too large for the model, or the weights of '{}' are bad",
      with_commas(bad.count), plural(rows, "row"), bad.first, describe_output(line.text("output")),
      line.text("model"));
  if (!line.has("allow-nan")) throw AgreedError(found + "; --allow-nan accepts them", kExitData);
  if (rank == 0) log_warning("{}", found);
}

}  // namespace

PredictRequest read_predict_request(const CommandLine& line) {
  PredictRequest request{
      .keep = line.value("keep"),
      .view = {.probabilities = line.has("proba"), .top = line.count("top", {1, 1'000'000'001}, 0)}};
  if (line.value("threshold")) request.view.threshold = line.number("threshold", {0, 1}, 0);
  refuse_two(request.view);
  return request;
}

int predict_command(Communicator& comm, const CommandLine& line) {
  const Stopwatch watch;
  Inference inference;
  agree(comm, [&] { inference.request = read_predict_request(line); });
  FinishedRun run = open_finished_run(comm, line);
  agree(comm, [&] {
    if (comm.rank() == 0) check_files(line, inference.request, run.config.data);
    prepare(inference, line, std::move(run), comm);
  });
  const Config& config = inference.trained->config;
  const std::string& schema = inference.trained->schema();
  RankPeerGroup peers(comm);
  if (is_standard_input(line.text("input"))) spool_standard_input(comm);
  const std::unique_ptr<RecordSource> source = open_input(line, config, schema, peers);
  agree(comm, [&] {
    if (source->vocabulary()) return;
    inference.table = read_table_schema(schema);
    if (inference.table) inference.label_scales = label_scales(*inference.table);
    inference.labels = read_target_labels(schema);
  });
  const DatasetInfo& input = source->info();
  agree(comm, [&] { check_input(line, input.features, inference.trained->model->input()); });
  const RecordSource* const sources[] = {source.get()};
  refuse_different_data(comm, sources);
  log_notes(sources);
  const BadRows bad = write_predictions(comm, line, config, inference, *source);
  const bool leaves_out = input.has_lengths && inference.positions() > 0;
  log_info("predicted {} of {} in {}: {}",
           leaves_out ? fmt::format("the positions of {}", plural(input.rows, "record"))
                      : plural(input.rows * inference.rows_of_record(), "row"),
           line.text("input"), human_seconds(watch.seconds()), describe_output(line.text("output")));
  report_bad_rows(line, bad, input.rows * inference.rows_of_record(), comm.rank());
  return 0;
}

}  // namespace lockstep
