#include "lockstep/data/windows/time_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"
#include "position_table.h"
#include "time_axis.h"

namespace lockstep {
namespace {

class PositionWindows final : public WindowSource {
 public:
  // `has_targets`: the horizon of each window is known.
  PositionWindows(std::shared_ptr<const PositionTable> positions, std::vector<Index> origins,
                  bool has_targets, std::vector<Note> notes, std::vector<std::string> doubts)
      : positions_(std::move(positions)),
        origins_(std::move(origins)),
        notes_(std::move(notes)),
        doubts_(std::move(doubts)) {
    const DatasetInfo& table = positions_->table().info();
    info_ = {.rows = static_cast<Index>(origins_.size()),
             .features = {{positions_->features()}},
             .target_columns = has_targets ? positions_->labels() * windows().horizon : 0,
             .name = table.name,
             .source_bytes = table.source_bytes,
             .scaled_label = table.scaled_label};
    chunks_ = {{.records = {0, info_.rows}}};
  }

  std::string schema() const override { return to_json(positions_->schema()); }
  std::vector<Note> notes() const override { return notes_; }
  std::vector<std::string> doubts() const override { return doubts_; }
  std::vector<std::string> files() const override { return positions_->table().files(); }
  const Fingerprint* fingerprint() const override { return &positions_->fingerprint(); }
  Index position(Index id) const override {
    return positions_->table().position(at(positions_->axis().records, at(origins_, id)));
  }
  const TableWindows& windows() const override { return positions_->windows(); }

  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override {
    if (info_.target_columns > 0) check_labels(rule);
    return std::make_unique<ComputedReader>();
  }

  void unpack(std::span<const Index> ids, std::span<const std::byte* const>, Matrix& x,
              Matrix& targets) const override {
    for (Index row = 0; row < std::ssize(ids); ++row) {
      const Index origin = at(origins_, at(ids, row));
      positions_->write_features(origin, x.data() + row * x.cols());
      if (info_.target_columns > 0) positions_->write_targets(origin, targets.data() + row * targets.cols());
    }
  }

  std::vector<NaiveForecast> naive_forecasts() const override {
    std::vector<NaiveForecast> forecasts{measure("the last value", 1)};
    const Index season = positions_->options().season;
    if (season > 0)
      forecasts.push_back(measure(fmt::format("the value {} positions before", season), season));
    return forecasts;
  }

  std::vector<std::string> series_of(Index id) const override {
    const TimeAxis& axis = positions_->axis();
    return at(axis.series, axis.series_of(at(origins_, id) - 1));
  }
  std::string time_of(Index id, Index step) const override {
    const TimeAxis& axis = positions_->axis();
    const Index origin = at(origins_, id);
    const Index series = axis.series_of(origin - 1);
    const Index end = axis.positions_of(series).end;
    const double time = origin + step < end
                            ? at(axis.times, origin + step)
                            : at(axis.grids, series).after(at(axis.times, end - 1), origin + step - end + 1);
    return axis.text(time, series);
  }

 private:
  void check_labels(const TargetRule& rule) const {
    const TimeAxis& axis = positions_->axis();
    for (Index i = 0; i < positions_->labels(); ++i) {
      for (Index p = 0; p < axis.positions(); ++p) {
        const Scalar target = positions_->label(i)[p];
        if (std::isnan(target) || rule.allows(target)) continue;
        throw DataError("'{}', record {} (counted from 0): label {}, expected {}", info_.name,
                        with_commas(positions_->table().position(at(axis.records, p))), target,
                        rule.expected());
      }
    }
  }

  // Repeats the last `season` values of the past, which has so many.
  NaiveForecast measure(std::string name, Index season) const {
    const Index horizon = windows().horizon;
    NaiveForecast forecast{.name = std::move(name)};
    forecast.by_step.resize(static_cast<std::size_t>(horizon));
    for (const Index origin : origins_) {
      for (Index i = 0; i < positions_->labels(); ++i) {
        const Scalar* const label = positions_->label(i);
        const LabelScale scale =
            positions_->scales().empty() ? LabelScale{} : at(positions_->scales(), i * horizon);
        for (Index step = 0; step < horizon; ++step) {
          const auto target = static_cast<double>(label[origin + step]);
          const auto repeated = static_cast<double>(label[origin - season + step % season]);
          forecast.squared += (repeated - target) * (repeated - target);
          at(forecast.by_step, step) += std::abs(scale.undo(repeated) - scale.undo(target));
        }
      }
    }
    const auto of_step = static_cast<double>(info_.rows * positions_->labels());
    for (double& sum : forecast.by_step) forecast.absolute += (sum /= of_step);
    forecast.absolute /= static_cast<double>(horizon);
    forecast.squared /= of_step * static_cast<double>(horizon);
    return forecast;
  }

  std::shared_ptr<const PositionTable> positions_;
  std::vector<Index> origins_;  // of each window
  std::vector<Note> notes_;
  std::vector<std::string> doubts_;
};

// The windows of one set. `held`: null: all records are in it.
class WindowChoice {
 public:
  WindowChoice(const PositionTable& positions, Split split, const HoldOut* held)
      : positions_(positions), split_(split), held_(held) {
    const TimeAxis& axis = positions.axis();
    for (Index series = 0; series < axis.series_count(); ++series) choose(axis.positions_of(series));
  }

  // Errors: DataError if there is none.
  std::vector<Index> origins() {
    if (!origins_.empty()) return std::move(origins_);
    const TableWindows& windows = positions_.windows();
    throw DataError(
        "'{}' has no window for the {} set: a window of {} and its horizon of {} positions need {} in a row, "
        "and the longest series has {}{}: lower data.window or data.horizon",
        positions_.table().info().name, set_name(split_), windows.window, windows.horizon,
        windows.window + windows.horizon, plural(longest_, "position"),
        incomplete_ > 0
            ? fmt::format("; {} were left out, as a label is missing in them", plural(incomplete_, "window"))
            : "");
  }

  Note note() const {
    const TableWindows& windows = positions_.windows();
    const TimeAxis& axis = positions_.axis();
    Note note{
        .text = fmt::format(
            "{} set: {} of {} + {} positions{}{}; the horizons are from {} to {}", set_name(split_),
            plural(std::ssize(origins_), "window"), windows.window, windows.horizon,
            positions_.options().stride > 1 ? fmt::format(", one each {}", positions_.options().stride) : "",
            axis.series_count() > 1
                ? fmt::format(", of {} of {} series", with_commas(used_), with_commas(axis.series_count()))
                : "",
            axis.text(first_), axis.text(last_)),
        .figures = {{"windows",
                     {{"windows", origins_.size()},
                      {"series", {used_, axis.series_count()}},
                      {"horizons", {axis.text(first_), axis.text(last_)}},
                      {"left_out", incomplete_}}}}};
    if (incomplete_ > 0)
      note.text += fmt::format("\n{} set: {} left out, as a label is missing in {}", set_name(split_),
                               plural(incomplete_, "window"), incomplete_ == 1 ? "it" : "them");
    return note;
  }

 private:
  bool is_known(Index position) const {
    return positions_.has_labels(position) && positions_.are_measured(position);
  }

  void choose(Range series) {
    const Index window = positions_.windows().window;
    const Index horizon = positions_.windows().horizon;
    longest_ = std::max(longest_, series.size());
    Index complete = 0;  // positions in a row, up to the one at hand, that have labels
    Index known = 0;     // that have measured ones, and are in the set
    Index inside = 0;    // that are in the set
    std::optional<Index> first;
    bool any = false;
    for (Index p = series.begin; p < series.end; ++p) {
      complete = positions_.has_labels(p) ? complete + 1 : 0;
      const bool in_set = held_ == nullptr || held_->takes(split_, at(positions_.axis().records, p));
      inside = in_set ? inside + 1 : 0;
      known = inside > 0 && is_known(p) ? known + 1 : 0;
      const Index origin = p + 1 - horizon;
      if (inside < horizon || origin - window < series.begin) continue;
      if (!first) first = origin;
      if ((origin - *first) % positions_.options().stride != 0) continue;
      if (known < horizon || complete < window + horizon) {
        ++incomplete_;
        continue;
      }
      const double begin = at(positions_.axis().times, origin);
      const double end = at(positions_.axis().times, p);
      first_ = origins_.empty() ? begin : std::min(first_, begin);
      last_ = origins_.empty() ? end : std::max(last_, end);
      origins_.push_back(origin);
      any = true;
    }
    used_ += any ? 1 : 0;
  }

  const PositionTable& positions_;
  Split split_;
  const HoldOut* held_;
  std::vector<Index> origins_;
  Index used_ = 0;  // series that give a window
  Index longest_ = 0;
  Index incomplete_ = 0;
  double first_ = 0;
  double last_ = 0;
};

std::unique_ptr<RecordSource> windows_of(const std::shared_ptr<const PositionTable>& positions, Split split,
                                         const HoldOut* held, PeerGroup& peers) {
  std::unique_ptr<RecordSource> source;
  peers.agree([&] {
    WindowChoice choice(*positions, split, held);
    std::vector<Note> notes;
    std::vector<std::string> doubts;
    if (split == Split::kTrain || held == nullptr) {  // the first set of the table
      notes = positions->table().notes();
      std::ranges::copy(positions->axis().notes, std::back_inserter(notes));
      doubts = positions->table().doubts();
    }
    notes.push_back(choice.note());
    std::vector<Index> origins = choice.origins();
    source = std::make_unique<PositionWindows>(positions, std::move(origins), true, std::move(notes),
                                               std::move(doubts));
  });
  return source;
}

void refuse_part_of_windows(const ValidationPart& part, const WindowOptions& windows) {
  if (part.by == ValidationPart::By::kTime ||
      (part.by == ValidationPart::By::kGroup && std::ranges::count(windows.series, part.column) > 0))
    return;
  throw ConfigError(
      "{}: windows overlap, so that a part of them by chance would be known from the others: hold back a "
      "span of time, time({}, 0.2), or whole series",
      part.setting, windows.time);
}

void check_window_columns(const WindowOptions& windows, const TableOptions& table) {
  for (const std::string& name : windows.future) {
    error_if(std::ranges::count(table.label, name) > 0,
             "data.future = {}: it is a label, which is what is not known ahead", in_quotes(name));
    error_if(std::ranges::count(windows.series, name) > 0,
             "data.future = {}: it names the series (data.series), and is the same at all times",
             in_quotes(name));
  }
  error_if(windows.season > windows.window,
           "data.season = {} is longer than data.window = {}: a season is repeated from the past",
           windows.season, windows.window);
}

// The schema of a table whose labels can be forecast. Errors: ConfigError.
TableSchema check_labels(const RecordSource& table) {
  TableSchema schema = parse_schema(table.schema(), "the schema of the windows");
  for (const TableColumn& column : schema.columns) {
    error_if(
        column.weight,
        "data.weight with data.window: a record is in many windows, so that it has no weight of its own");
    error_if(column.label && column.kind != ColumnKind::kNumeric,
             "column {} has categories, and windows forecast numbers", in_quotes(column.name));
  }
  return schema;
}

// *Collective.* Opens a table; null if there is none. `divide`: which records are held back.
std::shared_ptr<const PositionTable> open_positions(OpenRequest request, const DataParts& parts = {},
                                                    const DivideTable& divide = {}) {
  const DataOptions& data = request.options;
  PeerGroup& peers = request.peers;
  const FormatEntry* format = nullptr;
  peers.agree(
      [&] { format = request.input ? &format_of_input(*request.input, data) : &choose_format(data); });
  ColumnTexts texts(dividing_columns(parts, data.table));
  const TableQuestions questions{.texts = texts, .divide = divide};
  request.questions = &questions;
  std::unique_ptr<RecordSource> table = format->open(request);
  if (!table) return nullptr;
  TableSchema schema;
  peers.agree([&] { schema = check_labels(*table); });
  TimeAxis axis = read_time_axis(*table, data.table.windows, schema.windows->steps, texts, peers);
  texts.forget();
  return std::make_shared<const PositionTable>(std::move(table), std::move(schema), std::move(axis),
                                               data.table.windows, peers);
}

// A model that knows its series by name knows no others. Errors: DataError.
void refuse_new_series(const PositionTable& positions, const TableOptions& options) {
  const TableSchema& schema = positions.schema();
  for (std::size_t i = 0; i < options.windows.series.size(); ++i) {
    const auto column = std::ranges::find(schema.columns, options.windows.series[i], &TableColumn::name);
    const bool is_known = column != schema.columns.end() && column->kind == ColumnKind::kCategorical &&
                          !column->is_hashed() && std::ssize(column->values) < options.vocabulary;
    if (!is_known) continue;
    for (const std::vector<std::string>& names : positions.axis().series) {
      if (std::ranges::count(column->values, names[i]) > 0) continue;
      throw DataError(
          "'{}': training has no series with {} = {}, and the model knows series by that column ({}): leave "
          "such records out, or train with data.ignore = [\"{}\"], so that one model serves any series",
          positions.table().info().name, excerpt(column->name), in_quotes(names[i]), listed(column->values),
          excerpt(column->name));
    }
  }
}

DataSets open_windows(const SetsRequest& request) {
  PeerGroup& peers = request.peers;
  const WindowOptions& windows = request.data.table.windows;
  DataParts parts;
  peers.agree([&] {
    parts = parts_beside_files(request.data);
    error_if(request.data.format != "csv",
             "data.time = {} reads a column of a table (csv), and the data have the format '{}'",
             in_quotes(windows.time), request.data.format);
    check_window_columns(windows, request.data.table);
    for (const auto& part : {parts.validation, parts.test}) {
      if (part) refuse_part_of_windows(*part, windows);
    }
  });
  const DataOptions data = data_of_files(request.data, parts);
  DataSets sets;
  std::string learnt = request.schema;
  if (request.wanted.contains(Split::kTrain)) {
    HoldOut& held = sets.held;
    DivideTable divide;
    if (parts.any())
      divide = [&](const TableRecords& records) {
        return held = hold_out(parts, request.seed, records, peers);
      };
    const auto positions = open_positions(
        {.options = data, .seed = request.seed, .peers = peers, .schema = request.schema}, parts, divide);
    learnt = to_json(positions->schema());
    sets.train = windows_of(positions, Split::kTrain, &held, peers);
    if (parts.validation) sets.validation = windows_of(positions, Split::kValidation, &held, peers);
    if (parts.test) sets.test = windows_of(positions, Split::kTest, &held, peers);
  }
  for (auto& [split, set] :
       {std::pair(Split::kValidation, &sets.validation), std::pair(Split::kTest, &sets.test)}) {
    if (*set || !request.wanted.contains(split)) continue;
    const auto positions = open_positions(
        {.options = data, .split = split, .seed = request.seed, .peers = peers, .schema = learnt});
    if (!positions) continue;
    peers.agree([&] { refuse_new_series(*positions, data.table); });
    *set = windows_of(positions, split, nullptr, peers);
  }
  return sets;
}

// Series whose forecast begins before that of others, if there are some.
std::string describe_ends(const TimeAxis& axis, const std::vector<Index>& origins) {
  const auto last = [&](Index series) { return at(axis.times, at(origins, series) - 1); };
  Index latest = 0;
  for (Index series = 1; series < axis.series_count(); ++series)
    if (last(series) > last(latest)) latest = series;
  Index earlier = 0;
  Index first = 0;
  for (Index series = 0; series < axis.series_count(); ++series)
    if (last(series) < last(latest) && earlier++ == 0) first = series;
  if (earlier == 0) return "";
  return fmt::format(
      "{} of {} end before {}, and their forecasts begin behind their own ends, as that of {} behind {}",
      with_commas(earlier), with_commas(axis.series_count()) + " series", axis.text(last(latest), latest),
      axis.series_name(first), axis.text(last(first), first));
}

// The last window of each series of a table, whose horizon lies behind the last known labels; without
// targets. Errors: DataError also if a column that is known ahead is not known so far.
std::unique_ptr<RecordSource> open_last_windows(const InputRequest& request) {
  PeerGroup& peers = request.peers;
  const DataOptions data = data_of_files(request.data);
  const WindowOptions& windows = data.table.windows;
  const auto positions = open_positions(
      {.options = data, .peers = peers, .schema = request.schema, .input = request.input, .labels = true});
  std::unique_ptr<RecordSource> source;
  peers.agree([&] {
    refuse_new_series(*positions, data.table);
    const TimeAxis& axis = positions->axis();
    std::vector<Index> origins;
    for (Index series = 0; series < axis.series_count(); ++series) {
      const Range range = axis.positions_of(series);
      Index origin = range.end;
      while (origin > range.begin && !positions->has_labels(origin - 1)) --origin;
      const auto fail = [&](const std::string& problem) {
        const std::string name = axis.series_name(series);
        throw DataError("'{}'{}: {}", positions->table().info().name, name.empty() ? "" : ", series " + name,
                        problem);
      };
      if (origin - range.begin < windows.window)
        fail(fmt::format("{} with labels, and a window has {}: give a longer history",
                         plural(origin - range.begin, "position"), windows.window));
      for (Index p = origin - windows.window; p < origin; ++p) {
        if (!positions->has_labels(p))
          fail(fmt::format(
              "the label at {} is missing, and the window before the forecast needs it: data.fill_gaps "
              "= \"last\" or \"zero\" fills it",
              axis.text(at(axis.times, p), series)));
      }
      if (positions->knows_ahead() && range.end - origin < windows.horizon)
        fail(fmt::format(
            "{} known ahead (data.future: {}) behind the last label, expected {}: add records with these "
            "columns and an empty label",
            range.end - origin == 1 ? "1 position is" : fmt::format("{} positions are", range.end - origin),
            fmt::join(windows.future, ", "), windows.horizon));
      if (range.end - origin < windows.horizon && !at(axis.grids, series).holds())
        fail(fmt::format(
            "its times follow no pattern ({} as a rule), so that those of the forecast are not known: add "
            "records for the coming {} times with an empty label",
            at(axis.grids, series).describe(), windows.horizon));
      for (Index p = origin; p < std::min(range.end, origin + windows.horizon); ++p) {
        const TimeGrid& grid = at(axis.grids, series);
        const double time = at(axis.times, p);
        const bool is_filled = at(axis.filled, p);
        if (!is_filled && (!grid.holds() || grid.steps(at(axis.times, p - 1), time) == 1)) continue;
        fail(fmt::format("there is no record of {}, and there are later ones with an empty label: add it",
                         axis.text(is_filled ? time : grid.after(at(axis.times, p - 1), 1), series)));
      }
      origins.push_back(origin);
    }
    std::vector<Note> notes = positions->table().notes();
    std::ranges::copy(axis.notes, std::back_inserter(notes));
    if (const std::string ends = describe_ends(axis, origins); !ends.empty()) notes.push_back({.text = ends});
    source = std::make_unique<PositionWindows>(positions, std::move(origins), false, std::move(notes),
                                               positions->table().doubts());
  });
  return source;
}

}  // namespace

DataKind windows_kind() {
  return {.name = "windows of time",
          .is_of = [](const DataOptions& data) { return data.table.windows.any(); },
          .forecasts = true,
          .no_folds =
              "cv knows no windows of time (data.window): give data.validation = \"time(COLUMN, 0.2)\" "
              "and data.test_part, and train once",
          .refusals =
              [](const DataOptions& data) {
                const WindowOptions& windows = data.table.windows;
                return std::vector<KindRefusal>{
                    {windows.time.empty() || windows.horizon == 0,
                     "data.window without data.time or data.horizon"},
                    {data.memory == MemoryMode::kStream, "data.window with data.memory stream"}};
              },
          .open = open_windows,
          .open_input = open_last_windows};
}

}  // namespace lockstep
