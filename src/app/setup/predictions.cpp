#include "predictions.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/agree.h"
#include "lockstep/data/table/schema/kept_columns.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/data/windows/time_windows.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {
namespace {

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

// The record and the position of each row, both from 0 on.
class PositionColumns final : public TextColumns {
 public:
  explicit PositionColumns(Index positions) : positions_(positions) {}
  std::span<const std::string> names() const override { return names_; }
  bool are_numbers() const override { return true; }
  std::span<const std::string> next() override {
    cells_ = {std::to_string(next_ / positions_), std::to_string(next_ % positions_)};
    ++next_;
    return cells_;
  }
  void skip(Index rows) { next_ += rows; }

 private:
  Index positions_;
  std::vector<std::string> names_{"record", "position"};
  std::vector<std::string> cells_;
  Index next_ = 0;
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

// The meaning of a row of the file, by the data that the model was trained on.
struct RowMeaning {
  std::optional<TableSchema> table = {};
  Index horizon = 1;    // rows of the file that a row of the prediction becomes
  Index of_record = 1;  // rows of the file that a record has
  std::vector<TargetLabel> labels = {};
  std::vector<LabelScale> scales = {};
};

RowMeaning meaning_of_rows(const TrainedModel& trained, const RecordSource& source) {
  RowMeaning meaning{.of_record = std::max<Index>(1, trained.loss->form().positions)};
  if (source.vocabulary()) return meaning;
  meaning.table = read_table_schema(trained.schema());
  meaning.labels = read_target_labels(trained.schema());
  if (!meaning.table) return meaning;
  meaning.scales = label_scales(*meaning.table);
  if (!meaning.table->windows) return meaning;
  // A label has as many targets as its horizon has positions, and a row one of them.
  meaning.horizon = meaning.table->windows->horizon;
  meaning.of_record = std::max(meaning.horizon, meaning.of_record);
  meaning.labels.clear();
  for (const std::size_t i : meaning.table->targets())
    meaning.labels.push_back({.name = meaning.table->columns[i].name});
  const std::vector<LabelScale> of_targets = std::exchange(meaning.scales, {});
  for (Index i = 0; i < std::ssize(of_targets); i += meaning.horizon)
    meaning.scales.push_back(at(of_targets, i));
  return meaning;
}

// The file of the predictions with all that writes it.
class PredictionOutput {
 public:
  PredictionOutput(const TrainedModel& trained, const RecordSource& source, const RowMeaning& meaning,
                   const PredictRequest& request)
      : horizon_(meaning.horizon),
        levels_(trained.loss->form().outputs_per_target()),
        table_(trained.loss->form(), trained.outputs() / horizon_, meaning.labels, request.view,
               meaning.scales) {
    const PredictionFileEntry& entry = choose_prediction_file(request.path, request.format);
    const Index positions = trained.loss->form().positions;
    const std::span<const Index> skipped = request.as_input ? source.skipped() : std::span<const Index>();
    if (positions > 0 && entry.has_texts) positions_.emplace(positions);
    if (request.keep) {
      kept_ = std::make_unique<KeptColumns>(*source.table(), parse_column_names("--keep", *request.keep));
    }
    if (meaning.table && meaning.table->windows && entry.has_texts)
      kept_ = std::make_unique<ForecastColumns>(*source.as_windows(), trained.config.data.table.windows);
    file_ = entry.make({.path = request.path,
                        .rows = source.info().rows * meaning.of_record + std::ssize(skipped),
                        .positions = positions,
                        .columns = {table_.columns().begin(), table_.columns().end()},
                        .kept = positions_ ? &*positions_ : kept_.get()});
    lines_.emplace(table_, *file_, skipped);
  }

  // Rows of predict_rows(). Where positions are numbered, padding is left out.
  void append(const ConstMatrix& rows) {
    if (!positions_) return lines_->append(horizon_ == 1 ? rows : by_step(rows, horizon_, levels_, steps_));
    for (Index begin = 0, end = 0; begin < rows.rows(); begin = end) {
      const bool padding = is_padding(rows, begin);
      while (end < rows.rows() && is_padding(rows, end) == padding) ++end;
      if (!padding) lines_->append(rows_of(rows, {begin, end}));
      if (padding) positions_->skip(end - begin);
    }
  }
  BadRows finish() {
    lines_->finish();
    return lines_->bad_rows();
  }

 private:
  Index horizon_;
  Index levels_;
  PredictionTable table_;
  std::vector<Scalar> steps_;
  std::optional<PositionColumns> positions_;  // where positions are numbered
  std::unique_ptr<TextColumns> kept_;
  std::unique_ptr<PredictionFile> file_;
  std::optional<PredictionLines> lines_;
};

}  // namespace

WrittenRows write_predictions(Communicator& comm, const TrainedModel& trained, const RecordSource& source,
                              const PredictRequest& request) {
  ModelRunner runner(comm, trained);
  Prediction prediction(runner.prediction(), source);
  WrittenRows written;
  std::optional<PredictionOutput> output;  // only rank 0 has one
  agree(comm, [&] {
    const RowMeaning meaning = meaning_of_rows(trained, source);
    written.rows = source.info().rows * meaning.of_record;
    if (comm.rank() == 0) output.emplace(trained, source, meaning, request);
  });
  prediction.run(trained.values(), [&](const ConstMatrix& rows) { output->append(rows); });
  agree(comm, [&] {
    if (output) written.bad = output->finish();
  });
  written.crossed = prediction.crossed();
  comm.broadcast(as_buffer(std::as_writable_bytes(std::span(&written.bad, 1))), 0);
  return written;
}

}  // namespace lockstep
