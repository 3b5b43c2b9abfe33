// Tables as text: CSV, TSV and their like, raw or packed with gzip.
#include "table_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "record_doubts.h"

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
  RecordDoubts doubts(schema_);
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
                                doubts.add(cells, chunk.file, unseen);
                              },
                          .check_again =
                              [&] {
                                unseen.assign(unseen.size(), 0);
                                doubts = RecordDoubts(schema_);
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
  doubts_ = doubts.describe(table_.text, request.name, peers);
  const std::vector<Index> sums = sum_over_ranks(unseen, peers);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == 0) continue;
    const std::string& name = schema_.columns[i].name;
    notes_.push_back(
        {.text = fmt::format(
             "{}, column {}: {} of {} records have a category that the training data does not have{}",
             request.name, in_quotes(name), with_commas(sums[i]), with_commas(scan.good),
             doubts.unseen_example(i)),
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
