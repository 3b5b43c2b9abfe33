// Tables as text: CSV, TSV and their like, raw or packed with gzip.
#include "table_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/message.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

const std::vector<std::string> kCsvExtensions = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".tab.gz"};

void describe_labels(const TableSchema& schema, DatasetInfo& info) {
  info.scaled_label = describe_scaled_label(schema);
  const auto classes = std::ranges::find_if(schema.columns, [](const TableColumn& column) {
    return column.label && column.kind == ColumnKind::kCategorical;
  });
  if (classes == schema.columns.end()) return;
  info.class_names = classes->values;
  info.target_classes = std::ssize(info.class_names);
  constexpr std::size_t kMaxShown = 5;
  std::vector<std::string> shown;
  for (const std::string& name :
       std::span(info.class_names).first(std::min(kMaxShown, info.class_names.size())))
    shown.push_back(in_quotes(name));
  info.target_text = fmt::format("label {} ({}{})", in_quotes(classes->name), fmt::join(shown, ", "),
                                 info.class_names.size() > kMaxShown ? ", ..." : "");
}

// Numbers of other data that lie far outside of those that the model learnt from, as they do in another unit
// or in another column: further away than all of training's numbers are from each other.
class FarNumbers {
 public:
  explicit FarNumbers(const TableSchema& schema) : schema_(&schema) {
    for (std::size_t i = 0; i < schema.columns.size(); ++i) {
      const TableColumn& column = schema.columns[i];
      const bool is_number = column.is_feature() && column.kind == ColumnKind::kNumeric;
      if (!is_number || !(column.numbers.min < column.numbers.max)) continue;
      const auto plain = [&column](double x) {  // the schema has the numbers' logarithms
        return column.scale == Scale::kLog ? std::copysign(std::expm1(std::abs(x)), x) : x;
      };
      bounds_.push_back({i, plain(column.numbers.min), plain(column.numbers.max)});
    }
  }

  // The cells of a record of that file, one for each column of the schema.
  void add(std::span<const Cell> cells, std::size_t file) {
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      const auto& [cell, min, max] = bounds_[i];
      const double number = cells[cell].number;
      const double span = max - min;
      if (cells[cell].is_number && (number < min - span || number > max + span))
        found_[{file, i}].merge({.count = 1, .mean = number, .min = number, .max = number});
    }
  }

  // *Collective.* A line for each file that has such numbers, of all ranks.
  std::vector<std::string> describe(const TextFiles& text, PeerGroup& peers) const {
    MessageWriter mine;
    for (const auto& [where, outside] : found_) mine.put(Outside{where.first, where.second, outside});
    Found all;
    for (const Bytes& message : peers.all_gather(mine.bytes())) {
      for (MessageReader reader(message); !reader.done();) {
        const auto theirs = reader.take<Outside>();
        all[{theirs.file, theirs.bounds}].merge(theirs.numbers);
      }
    }
    std::map<std::size_t, std::vector<std::string>> columns;  // by file
    for (const auto& [where, outside] : all)
      columns[where.first].push_back(describe(bounds_[where.second], outside));
    std::vector<std::string> lines;
    for (const auto& [file, found] : columns) {
      constexpr std::size_t kMaxColumns = 5;
      const auto shown = std::span(found).first(std::min(kMaxColumns, found.size()));
      lines.push_back(fmt::format(
          "{}values lie far outside of those that the model learnt from: {}{}; are they in the same unit?",
          text.files.size() == 1 ? "" : in_quotes(text.files[file].path) + ": ", fmt::join(shown, "; "),
          found.size() > shown.size() ? fmt::format("; and {} columns more", found.size() - shown.size())
                                      : ""));
    }
    return lines;
  }

 private:
  struct Bounds {  // of the training data
    std::size_t cell;
    double min, max;
  };
  struct Outside {  // numbers of a file that lie outside
    std::size_t file, bounds;
    NumberStats numbers;
  };
  using Found = std::map<std::pair<std::size_t, std::size_t>, NumberStats>;  // by file and bounds

  std::string describe(const Bounds& bounds, const NumberStats& outside) const {
    const TableColumn& column = schema_->columns[bounds.cell];
    const auto text = [&column](double number) {
      return column.date ? write_date(number, column.date->form) : fmt::format("{:.6g}", number);
    };
    const std::string range =
        outside.min == outside.max ? text(outside.min) : text(outside.min) + " to " + text(outside.max);
    return fmt::format("{} has {} in {}, in training {} to {}", in_quotes(column.name), range,
                       plural(outside.count, "record"), text(bounds.min), text(bounds.max));
  }

  const TableSchema* schema_;
  std::vector<Bounds> bounds_;
  Found found_;
};

// Columns of other data that are empty more often than in training, and numbers that may be read otherwise
// than they are written.
class OddColumns {
 public:
  explicit OddColumns(const TableSchema& schema) : schema_(&schema), counts_(schema.columns.size()) {
    for (const TableColumn& column : schema.columns) {
      if (column.kind == ColumnKind::kNumeric && !column.label)
        trained_ = std::max(trained_, column.numbers.count + column.missing);
    }
  }

  // `unseen`: how many values of each column so far training had not.
  void add(std::span<const Cell> cells, std::span<const Index> unseen) {
    const bool is_coming =
        schema_->windows &&
        std::ranges::all_of(schema_->targets(), [&](std::size_t label) { return cells[label].missing; });
    ++records_;
    coming_ += is_coming ? 1 : 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      Counts& counts = counts_[i];
      counts.missing += cells[i].missing ? 1 : 0;
      counts.missing_ahead += is_coming && cells[i].missing ? 1 : 0;
      if (unseen[i] > 0 && counts.unseen.empty()) counts.unseen = cells[i].text;
      counts.plain +=
          schema_->columns[i].notation && has_no_affix(*schema_->columns[i].notation, cells[i]) ? 1 : 0;
      if (!cells[i].is_number) continue;
      const double number = std::abs(cells[i].number);
      const auto has_places = [number](double unit) {
        return std::abs(number * unit - std::round(number * unit)) < 1e-6;
      };
      const bool of_thousandths = number >= 1 && has_places(1000) && !has_places(100);
      counts.of_thousandths += of_thousandths ? 1 : 0;
      counts.others += number >= 1000 || !has_places(1000) || (number < 1 && !has_places(1)) ? 1 : 0;
      if (of_thousandths) counts.example = cells[i].number;
    }
  }

  // A value of this rank that training had not, "" or ", such as 'x'": with one that is the same number.
  std::string unseen_example(std::size_t i) const {
    const std::string& text = counts_[i].unseen;
    if (text.empty()) return "";
    const auto number = parse_number(text);
    const auto is_it = [&number](const std::string& value) {
      return number && parse_number(value) == number;
    };
    const std::vector<std::string>& values = schema_->columns[i].values;
    const auto twin = std::ranges::find_if(values, is_it);
    return fmt::format(", such as {}{}", in_quotes(text),
                       twin == values.end() ? "" : fmt::format(" (training has {})", in_quotes(*twin)));
  }

  // *Collective.* A line for each kind of oddity. Errors: DataError, the same on all ranks, if a column that
  // is known ahead is empty in all coming records.
  std::vector<std::string> describe(const std::string& name, PeerGroup& peers) {
    std::vector<Index> sums{records_, coming_};
    for (const Counts& each : counts_)
      sums.insert(sums.end(),
                  {each.missing, each.missing_ahead, each.of_thousandths, each.others, each.plain});
    sums = sum_over_ranks(sums, peers);
    std::vector<std::string> empty;
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const TableColumn& column = schema_->columns[i];
      const std::span<const Index> of = std::span(sums).subspan(2 + 5 * i, 5);
      if (!column.is_feature()) continue;
      if (schema_->windows && std::ranges::count(schema_->windows->future, column.name) > 0)
        peers.agree([&] { refuse_empty_ahead(name, column, sums[1], of[1]); });
      if (is_emptier(column, of[0], sums[0]))
        empty.push_back(fmt::format("{} in {} of {} records, in training in {} of {}", in_quotes(column.name),
                                    with_commas(of[0]), with_commas(sums[0]), with_commas(column.missing),
                                    with_commas(trained_)));
      if (of[4] > 0 && of[4] == sums[0] - of[0])
        lines.push_back(fmt::format(
            "column {}: no value has the {} of the training data: are they in the same unit?",
            in_quotes(column.name), in_quotes(column.notation->prefix + column.notation->suffix)));
      if (may_be_thousands(column, of[2], of[3]))
        lines.push_back(
            fmt::format("column {}: {}{} with three places behind the point, where training has whole "
                        "numbers up to {:.0f}: if the "
                        "point stands between thousands, write them without it",
                        in_quotes(column.name), plural(of[2], "number"),
                        counts_[i].example == 0 ? "" : fmt::format(", such as {:.3f},", counts_[i].example),
                        column.numbers.max));
    }
    if (!empty.empty())
      lines.insert(lines.begin(),
                   fmt::format("columns are empty more often than in training, and a usual value stands "
                               "for the missing ones: {}",
                               listed(empty, 5)));
    return lines;
  }

 private:
  struct Counts {
    Index missing = 0;
    Index missing_ahead = 0;   // in records whose labels are to be forecast
    Index of_thousandths = 0;  // numbers such as 1.049
    Index others = 0;          // and those that 1049 would be none beside
    Index plain = 0;           // without the sign or unit that training's have
    std::string unseen;        // a value
    double example = 0;
  };

  static bool has_no_affix(const NumberNotation& notation, const Cell& cell) {
    const bool has_one = !notation.prefix.empty() || !notation.suffix.empty();
    const auto holds = [&cell](const std::string& affix) {
      return !affix.empty() && cell.text.find(affix) != std::string_view::npos;
    };
    return has_one && cell.is_number && !holds(notation.prefix) && !holds(notation.suffix);
  }
  bool is_emptier(const TableColumn& column, Index missing, Index records) const {
    constexpr double kMore = 0.3;
    if (records == 0 || trained_ == 0) return false;
    const double usual = static_cast<double>(column.missing) / static_cast<double>(trained_);
    return static_cast<double>(missing) / static_cast<double>(records) > usual + kMore;
  }
  static bool may_be_thousands(const TableColumn& column, Index of_thousandths, Index others) {
    const auto whole = [](double number) { return number == std::floor(number); };
    return column.is_number() && !column.notation && column.scale != Scale::kLog && of_thousandths > 0 &&
           others == 0 && column.numbers.max >= 1000 && whole(column.numbers.max) &&
           whole(column.numbers.min);
  }
  static void refuse_empty_ahead(const std::string& name, const TableColumn& column, Index coming,
                                 Index missing) {
    if (coming == 0 || missing < coming) return;
    throw DataError(
        "'{}': column {} is known ahead (data.future), and has no value in any of the {} without a label: "
        "fill it in",
        name, in_quotes(column.name), plural(coming, "record"));
  }

  const TableSchema* schema_;
  Index trained_ = 0;  // records of the training data
  Index records_ = 0;
  Index coming_ = 0;
  std::vector<Counts> counts_;
};

}  // namespace

void TextSource::check_request(const TableRequest& request) {
  error_if<DataError>(request.schema.empty() && !request.labels,
                      "the run has no schema.json, so the columns of '{}' cannot be made into features: was "
                      "the model trained on a table?",
                      request.name);
}

void TextSource::take_records(const RecordCounts& records, const TextFiles& text, const std::string& name) {
  records_ = records;
  Index next = 0;
  for (Index i = 0; i < std::ssize(text.chunks); ++i) {
    const Index rows = at(records.chunk_rows, i);
    if (rows == 0) continue;
    const std::size_t file = at(text.chunks, i).file;
    const bool same_file = !chunks_.empty() && chunks_.back().file == static_cast<Index>(file);
    chunks_.push_back({.records = {next, next + rows},
                       .follows_on = text.files[file].compressed && same_file,
                       .file = static_cast<Index>(file)});
    text_chunks_.push_back(i);
    next += rows;
  }
  if (records.bad == 0) return;
  const Index all = records.good + records.bad;
  notes_.push_back(
      {.text = fmt::format("{}: {} of {} records are bad ({:.3g} %) and skipped", name,
                           with_commas(records.bad), with_commas(all), 100 * records.bad_share()),
       .figures = {{"bad", {{"records", records.bad}, {"of", all}}}}});
}

void TextSource::unpack(std::span<const Index>, std::span<const std::byte* const> records, Matrix& x,
                        Matrix& targets) const {
  for (Index row = 0; row < std::ssize(records); ++row)
    unpack_record(at(records, row), x.data() + row * x.cols(), targets.data() + row * targets.cols());
}

void TextSource::fail_changed(const TextFiles& text, const TextChunk& chunk) {
  throw DataError(
      "'{}' changed since it was opened: its records are not those that were counted; files must stay as "
      "they are until the run is over",
      text.files[chunk.file].path);
}

class TableSource::Reader final : public ChunkReader {
 public:
  Reader(const TableSource& source, const TargetRule& rule)
      : source_(source),
        rule_(rule),
        reader_(source.table_, source.columns_, std::ssize(source.schema_.columns),
                source.schema_.missing_values),
        unseen_(source.schema_.columns.size()),
        behind_(static_cast<std::size_t>(source.encoder_->record_bytes())),
        targets_(static_cast<std::size_t>(source.encoder_->targets())) {}

  void read(Index number, std::span<std::byte> packed) override {
    const Range records = at(source_.chunks_, number).records;
    const TextChunk& chunk = source_.chunk_of(source_.table_.text, number);
    std::byte* const end = packed.data() + records.size() * source_.encoder_->record_bytes();
    std::byte* next = packed.data();
    bool refused = false;
    reader_.for_each_record(
        chunk,
        [&](std::span<const Cell> cells) {
          // Packing says whether it is a bad record, which may come behind the last good one.
          source_.encoder_->pack(cells, next == end ? behind_.data() : next, unseen_);
          if (next == end) fail_changed(source_.table_.text, chunk);
          refused = true;
          check_targets(next);
          refused = false;
          next += source_.encoder_->record_bytes();
        },
        // The bad ones were dealt with when the table was opened; a label that the model cannot use is
        // new.
        [&](const std::string& description) {
          if (refused) throw DataError(description);
        });
    if (next != end) fail_changed(source_.table_.text, chunk);
  }

 private:
  void check_targets(const std::byte* packed) {
    if (targets_.empty()) return;
    const std::byte* from =
        packed + source_.encoder_->record_bytes() - source_.encoder_->label_columns() * Index{sizeof(Scalar)};
    std::memcpy(targets_.data(), from, targets_.size() * sizeof(Scalar));
    const std::optional<BadTarget> bad = rule_.find_bad(targets_);
    if (bad) refuse(*bad);
  }

  [[noreturn]] void refuse(const BadTarget& bad) const {
    if (bad.position < 0) throw BadRecord{-1, bad.found, bad.expected};
    const std::size_t cell = at(source_.schema_.targets(), bad.position);
    const TableColumn& column = source_.schema_.columns[cell];
    const bool advises = column.kind == ColumnKind::kNumeric && targets_.size() == 1;
    throw BadRecord{static_cast<Index>(cell), bad.found,
                    bad.expected + (advises ? advise(column.name, targets_.front()) : "")};
  }

  // Advice for a number that a loss on classes, or on yes or no, cannot take.
  std::string advise(const std::string& column, Scalar target) const {
    if (rule_.classes == 0 && !rule_.unit_interval) return "";
    if (target != std::floor(target)) return " (train.loss 'mean_squared_error' learns any numbers)";
    return fmt::format(" (data.columns = [\"{}: categorical\"] makes classes 0, 1, ... of any values)",
                       excerpt(column));
  }

  const TableSource& source_;
  TargetRule rule_;
  TableReader reader_;
  std::vector<Index> unseen_;
  std::vector<std::byte> behind_;  // a record behind those that were counted
  std::vector<Scalar> targets_;    // targets of the record at hand
};

TableSource::TableSource(const TableRequest& request) {
  const bool learns = request.schema.empty();
  request.peers.agree([&] {
    check_request(request);
    if (!learns) schema_ = parse_schema(request.schema, "the schema of the model");
  });
  table_ = open_table_text(request.paths, request.options, request.peers, learns ? nullptr : &schema_);
  const Scan scan = learns ? learn(request) : check(request);
  if (request.peers.rank() != 0) doubts_.clear();  // one rank warns
  request.peers.agree([&] { check_weights(scan); });
  info_ = {.rows = scan.good,
           .features = {{encoder_->features()}},
           .target_columns = encoder_->targets(),
           .weighted = encoder_->weighted(),
           .name = request.name,
           .record_bytes = encoder_->record_bytes(),
           .source_bytes = table_.text.source_bytes()};
  if (request.labels) describe_labels(schema_, info_);
  take_records(scan, table_.text, request.name);
}

Scan TableSource::learn(const TableRequest& request) {
  LearntSchema learnt = learn_schema(table_, request.options, request.name, request.questions, request.peers);
  schema_ = std::move(learnt.schema);
  encoder_ = std::make_unique<Encoder>(schema_, request.labels);
  columns_ = match_columns(table_, schema_, request.labels);
  notes_ = std::move(learnt.remarks);
  doubts_ = std::move(learnt.doubts);
  const std::string layout =
      fmt::format("{}: the {} feature{} of a {}", request.name, encoder_->features(),
                  encoder_->features() == 1 ? "" : "s", schema_.windows ? "position" : "record");
  constexpr std::size_t kMaxLines = 200;
  notes_.push_back({layout + "\n" + first_lines(schema_.describe(), kMaxLines)});
  return std::move(learnt.scan);
}

// Checks the records against a given schema: packing them shows which ones it fits.
Scan TableSource::check(const TableRequest& request) {
  PeerGroup& peers = request.peers;
  peers.agree([&] { columns_ = match_columns(table_, schema_, request.labels); });
  encoder_ = std::make_unique<Encoder>(schema_, request.labels);
  for (const std::string& warning : table_.warnings) notes_.push_back({warning});
  if (const std::string positions = describe_positions(table_, schema_); !positions.empty())
    notes_.push_back({positions});
  const TableQuestions* const questions = request.questions;
  if (questions != nullptr && !questions->texts.empty()) {
    const std::vector<TableColumn> none(table_.names.size(), {.name = {}, .kind = ColumnKind::kIgnored});
    take_texts(table_, request.options, none, request.name, questions->texts, peers);
  }
  FarNumbers far(schema_);
  OddColumns odd(schema_);
  std::vector<Index> unseen(schema_.columns.size());
  std::vector<std::byte> packed(static_cast<std::size_t>(encoder_->record_bytes()));
  const TableOptions& options = request.options;
  Scan scan = scan_table({.table = table_,
                          .columns = columns_,
                          .wants = std::vector<ColumnWants>(schema_.columns.size()),
                          .missing = schema_.missing_values,
                          .bad = {.action = options.on_bad_record, .most = options.max_bad_share},
                          .check =
                              [&](std::span<const Cell> cells, const TextChunk& chunk) {
                                encoder_->pack(cells, packed.data(), unseen);
                                far.add(cells, chunk.file);
                                odd.add(cells, unseen);
                              },
                          .check_again =
                              [&] {
                                unseen.assign(unseen.size(), 0);
                                far = FarNumbers(schema_);
                                odd = OddColumns(schema_);
                              }},
                         peers);
  if (questions != nullptr) {
    questions->texts.leave_out(scan.bad_positions);
    if (questions->divide)
      questions->divide({.name = request.name,
                         .rows = scan.good,
                         .options = options,
                         .columns = schema_.columns,
                         .texts = questions->texts});
  }
  doubts_ = far.describe(table_.text, peers);
  std::ranges::copy(odd.describe(request.name, peers), std::back_inserter(doubts_));
  const std::vector<Index> sums = sum_over_ranks(unseen, peers);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == 0) continue;
    const std::string& name = schema_.columns[i].name;
    notes_.push_back(
        {.text = fmt::format(
             "{}, column {}: {} of {} records have a category that the training data does not have{}",
             request.name, in_quotes(name), with_commas(sums[i]), with_commas(scan.good),
             odd.unseen_example(i)),
         .figures = {{"unseen", {{"column", name}, {"records", sums[i]}, {"of", scan.good}}}}});
  }
  if (encoder_->weighted()) {
    const NumberStats& weights = weights_in(scan);
    notes_.push_back(
        {.text = fmt::format("{}: records weigh from {:.4g} to {:.4g}, mean {:.4g}", request.name,
                             weights.min, weights.max, weights.mean),
         .figures = {{"weights", {{"min", weights.min}, {"max", weights.max}, {"mean", weights.mean}}}}});
  }
  peers.agree([&] {
    if (scan.good > 0) return;
    notes_.push_back({fmt::format("'{}' holds no records", request.name)});
    if (!request.labels && scan.bad == 0) return;
    throw DataError("'{}' holds no records{}", request.name, table_.header ? ", only a header" : "");
  });
  return scan;
}

const NumberStats& TableSource::weights_in(const Scan& scan) const {
  const auto column = std::ranges::find_if(schema_.columns, &TableColumn::weight);
  return at(scan.columns, column - schema_.columns.begin()).numbers;
}

void TableSource::check_weights(const Scan& scan) const {
  if (!encoder_->weighted() || weights_in(scan).max > 0) return;
  const auto column = std::ranges::find_if(schema_.columns, &TableColumn::weight);
  throw DataError(
      "'{}', column {}: the weights of all {} records are 0, so nothing counts: is it the column that "
      "data.weight should name?",
      table_.text.files.front().path, in_quotes(column->name), with_commas(weights_in(scan).count));
}

std::unique_ptr<ChunkReader> TableSource::reader(const TargetRule& rule) const {
  return std::make_unique<Reader>(*this, rule);
}

std::optional<TableRequest> table_request(const OpenRequest& request,
                                          std::span<const std::string> extensions) {
  const DataOptions& data = request.options;
  const std::string name =
      request.input.value_or(of_split(request.split, data.train, data.validation, data.test));
  if (name.empty() && request.split != Split::kTrain) return std::nullopt;
  std::vector<std::string> paths;
  request.peers.agree([&] {
    error_if(name.empty() && !request.input,
             "data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
    paths = request.input ? list_input_files(name, extensions)
                          : list_files(name, extensions, "data." + to_string(request.split));
  });
  return TableRequest{.paths = std::move(paths),
                      .name = name,
                      .options = data.table,
                      .schema = request.schema,
                      .labels = !request.input || request.labels,
                      .questions = request.questions,
                      .peers = request.peers};
}

FormatEntry csv_format() {
  return {
      .name = "csv",
      .help =
          "tables as text (RFC 4180), raw or gzip, with the columns to learn in them; 'trainer inspect "
          "FILE' shows what is in one and writes its [data] section",
      .extensions = kCsvExtensions,
      .options = {"data.train",     "data.validation",     "data.test",          "data.label",
                  "data.positive",  "data.weight",         "data.numeric",       "data.categorical",
                  "data.ignore",    "data.columns",        "data.scale",         "data.missing",
                  "data.encode",    "data.missing_values", "data.vocabulary",    "data.header",
                  "data.separator", "data.quotes",         "data.on_bad_record", "data.max_bad_share",
                  "data.chunk_kib", "data.decimal",        "data.thousands",     "data.strict",
                  "data.encoding",  "data.skip_lines",     "data.fold_case",     "data.time",
                  "data.series",    "data.window",         "data.horizon",       "data.stride",
                  "data.future",    "data.window_scale",   "data.fill_gaps",     "data.season"},
      .open = [](const OpenRequest& request) { return open_tables<TableSource>(request, kCsvExtensions); }};
}

}  // namespace lockstep
