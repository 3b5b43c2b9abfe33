// Sparse records as text, as LIBSVM, SVMlight and XGBoost take them.
#include "sparse_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/data/message.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kLibsvmExtensions = {".libsvm", ".libsvm.gz", ".svm",
                                                    ".svm.gz", ".svmlight",  ".svmlight.gz"};

constexpr std::size_t kMaxSparseClasses = 10'000;
constexpr std::size_t kMaxLabels = 100'000;
constexpr Index kMaxFeatures = Index{1} << 31;

// The next word of a text, taken off it; "" behind the last.
std::string_view take_word(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && !is_blank(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

std::optional<double> parse_scalar(std::string_view text) {
  const std::optional<double> value = parse_number(text);
  if (value && std::abs(*value) > double{std::numeric_limits<Scalar>::max()}) {
    throw BadRecord{-1, in_quotes(text), "a number that single precision can hold"};
  }
  return value;
}

SparseValue parse_value(std::string_view word) {
  SparseValue parsed;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, parsed.index);
  std::optional<double> value;
  if (error == std::errc() && stop != end && *stop == ':') {
    value = parse_scalar(word.substr(static_cast<std::size_t>(stop - word.data()) + 1));
  }
  if (!value) throw BadRecord{-1, in_quotes(word), "INDEX:NUMBER"};
  if (parsed.index < 0 || parsed.index > kMaxFeatures) {
    throw BadRecord{-1, fmt::format("the index {}", parsed.index),
                    fmt::format("one from 0 to {}", kMaxFeatures)};
  }
  parsed.value = static_cast<Scalar>(*value);
  return parsed;
}

// Errors: BadRecord, column -1.
void parse_sparse_row(std::string_view record, SparseRow& row) {
  record = record.substr(0, record.find('#'));
  const std::string_view label = take_word(record);
  const std::optional<double> number = parse_scalar(label);
  if (!number) throw BadRecord{-1, in_quotes(label), "a number as label"};
  row.label = *number;
  row.values.clear();
  row.query = false;
  for (std::string_view word = take_word(record); !word.empty(); word = take_word(record)) {
    if (row.values.empty() && word.starts_with("qid:")) {
      row.query = true;
      continue;
    }
    const SparseValue next = parse_value(word);
    if (!row.values.empty() && next.index <= row.values.back().index) {
      throw BadRecord{-1, fmt::format("the index {} behind {}", next.index, row.values.back().index),
                      "ascending indices, each once"};
    }
    row.values.push_back(next);
  }
}

struct SparseScan : RecordCounts {
  Index smallest = std::numeric_limits<Index>::max();  // index; above `largest` if there is none
  Index largest = -1;                                  // index
  Index max_values = 0;                                // values in a record
  std::map<double, Index> labels;                      // counts of all that there are, or `too_many_labels`
  bool too_many_labels = false;
  bool queries = false;  // some records name the query of a ranking (qid)

  void add(const SparseRow& row) {
    ++good;
    queries |= row.query;
    max_values = std::max(max_values, std::ssize(row.values));
    if (!row.values.empty()) {
      smallest = std::min(smallest, row.values.front().index);
      largest = std::max(largest, row.values.back().index);
    }
    if (labels.size() <= kMaxLabels) ++labels[row.label];
    too_many_labels = labels.size() > kMaxLabels;
  }

  // Adds the findings of another rank in the chunks behind.
  void merge(const SparseScan& other) {
    append(other);
    queries |= other.queries;
    max_values = std::max(max_values, other.max_values);
    smallest = std::min(smallest, other.smallest);
    largest = std::max(largest, other.largest);
    for (const auto& [label, count] : other.labels) labels[label] += count;
    too_many_labels |= other.too_many_labels || labels.size() > kMaxLabels;
  }

  template <class Message>
  void pass(Message& message) {
    RecordCounts::pass(message);
    std::vector<double> found;
    std::vector<Index> counts;
    for (const auto& [label, count] : labels) {
      found.push_back(label);
      counts.push_back(count);
    }
    message(smallest, largest, max_values, found, counts, too_many_labels, queries);
    for (std::size_t i = 0; i < found.size(); ++i) labels[found[i]] = counts[i];
  }
};

// Calls use(row) for each record of a chunk, in order, and on_error(description) for the bad ones.
template <class Use, class OnError>
void for_each_sparse_row(const TextFiles& text, TextReader& reader, const TextChunk& chunk, const Use& use,
                         const OnError& on_error) {
  SparseRow row;
  const std::string_view records = reader.read(chunk);
  RecordLines lines(records, text.dialect, reader.first_line());
  for (std::string_view record; lines.next(record);) {
    if (record.front() == '#') continue;  // a line of comment
    try {
      parse_sparse_row(record, row);
      use(row);
    } catch (const BadRecord& bad) {
      on_error(fmt::format("'{}', line {}: found {}, expected {}", text.files[chunk.file].path,
                           with_commas(lines.line()), bad.found, bad.expected));
    }
  }
}

// The findings of a rank in its share of the text. `check`: called with each record; BadRecord makes it a bad
// one.
class SparsePass final : public TextPass {
 public:
  SparsePass(const TextFiles& text, const BadRecords& bad, const std::function<void(const SparseRow&)>& check)
      : text_(text), bad_(bad), check_(check), reader_(text) {}

  TextReader& text() override { return reader_; }
  bool names_lines() const override { return mine_.bad > 0; }
  void start_again() override { mine_ = {}; }
  void take(const TextChunk& chunk, std::size_t) override {
    const Index before = mine_.good;
    for_each_sparse_row(
        text_, reader_, chunk,
        [&](const SparseRow& row) {
          check_(row);
          mine_.add(row);
        },
        [&](const std::string& description) { mine_.add_bad(description, bad_); });
    mine_.chunk_rows.push_back(mine_.good - before);
  }
  Bytes message() {
    MessageWriter message;
    message(mine_);
    return message.bytes();
  }

 private:
  const TextFiles& text_;
  const BadRecords& bad_;
  const std::function<void(const SparseRow&)>& check_;
  TextReader reader_;
  SparseScan mine_;
};

// *Collective.* Errors as of scan_table.
SparseScan scan_sparse(TextFiles& text, const BadRecords& bad,
                       const std::function<void(const SparseRow&)>& check, PeerGroup& peers) {
  SparsePass pass(text, bad, check);
  read_text(text, peers, pass);
  SparseScan scan;
  for (const Bytes& bytes : peers.all_gather(pass.message())) {
    SparseScan theirs;
    MessageReader{bytes}(theirs);
    scan.merge(theirs);
  }
  peers.agree([&] { scan.check_bad_share(bad); });
  return scan;
}

SparseSchema learn(const SparseScan& scan, const TableRequest& request) {
  SparseSchema schema;
  if (scan.largest < 0) throw DataError("no record of '{}' has a feature", request.name);
  schema.first_index = scan.smallest == 0 ? 0 : 1;
  schema.features = scan.largest - schema.first_index + 1;
  // The one column of a libsvm file that has a name.
  const std::vector<std::string>& positive = request.options.positive;
  const std::vector<TableColumn> columns = declare_columns(
      {.label = {"label"}, .positive = positive, .columns = request.options.columns}, {"label"});
  if (columns.front().kind != ColumnKind::kCategorical) return schema;
  error_if<DataError>(scan.too_many_labels || scan.labels.size() > kMaxSparseClasses,
                      "'{}' has more than {} different labels, too many for classes", request.name,
                      kMaxSparseClasses);
  std::vector<ValueCounts::Entry> classes;
  for (const auto& [label, count] : scan.labels) {
    schema.classes.push_back(label);
    classes.push_back({fmt::format("{}", label), count});
  }
  if (positive.empty() && classes.size() != 2) return schema;
  const std::vector<std::string> names =
      ordered_classes(classes, positive.empty() ? "" : positive.front(), fmt::format("'{}'", request.name));
  if (names.front() != classes.front().text) std::swap(schema.classes.front(), schema.classes.back());
  return schema;
}

Scalar label_of(const SparseSchema& schema, double label) {
  if (schema.classes.empty()) return static_cast<Scalar>(label);
  const auto found = schema.classes.size() == 2 ? std::ranges::find(schema.classes, label)
                                                : std::ranges::lower_bound(schema.classes, label);
  if (found == schema.classes.end() || *found != label) {
    throw BadRecord{-1, fmt::format("label {}", label), "a class of the training data"};
  }
  return static_cast<Scalar>(found - schema.classes.begin());
}

void put(std::byte*& to, const void* value) {
  std::memcpy(to, value, 4);
  to += 4;
}

}  // namespace

std::string to_json(const SparseSchema& schema) {
  return Json{{"version", 1},
              {"format", "libsvm"},
              {"features", schema.features},
              {"first_index", schema.first_index},
              {"classes", schema.classes}}
             .dump(1) +
         "\n";
}

SparseSchema parse_sparse_schema(const std::string& text) {
  try {
    const Json json = parse_json<Json>(text);
    if (json.at("version") != 1 || json.at("format") != "libsvm") throw DataError("it is of another format");
    return {.features = whole_number(json.at("features")),
            .first_index = whole_number(json.at("first_index")),
            .classes = json.at("classes").get<std::vector<double>>()};
  } catch (const std::exception& error) {
    throw DataError("the schema of the model is not that of libsvm files: {}", error.what());
  }
}

std::optional<SparseSchema> read_sparse_schema(const std::string& text) {
  if (text.empty() || parse_json<Json>(text).value("format", "") != "libsvm") return std::nullopt;
  return parse_sparse_schema(text);
}

Index SparsePacking::record_bytes() const {
  return 4 * ((dense() ? features : 1 + 2 * max_values) + (labels ? 1 : 0));
}

void SparsePacking::pack(const SparseRow& row, Index first_index, Scalar label, std::byte* packed) const {
  std::memset(packed, 0, static_cast<std::size_t>(record_bytes()));
  if (labels) std::memcpy(packed + record_bytes() - sizeof label, &label, sizeof label);
  std::byte* const start = packed;
  std::uint32_t count = 0;
  packed += 4;
  for (const SparseValue& value : row.values) {
    const Index position = value.index - first_index;
    if (position < 0 || position >= features) continue;
    if (dense()) {
      std::memcpy(start + 4 * position, &value.value, 4);
    } else {
      const auto short_position = static_cast<std::uint32_t>(position);
      put(packed, &short_position);
      put(packed, &value.value);
      ++count;
    }
  }
  if (!dense()) std::memcpy(start, &count, 4);
}

void SparsePacking::unpack(const std::byte* packed, Scalar* to, Scalar* label) const {
  if (labels) std::memcpy(label, packed + record_bytes() - sizeof *label, sizeof *label);
  if (dense()) {
    std::memcpy(to, packed, 4 * static_cast<std::size_t>(features));
    return;
  }
  std::fill_n(to, features, Scalar{0});
  std::uint32_t count = 0;
  std::memcpy(&count, packed, 4);
  for (packed += 4; count > 0; --count, packed += 8) {
    std::uint32_t position = 0;
    std::memcpy(&position, packed, 4);
    std::memcpy(to + position, packed + 4, 4);
  }
}

class SparseSource::Reader final : public ChunkReader {
 public:
  Reader(const SparseSource& source, const TargetRule& rule)
      : source_(source), rule_(rule), reader_(source.text_) {}

  void read(Index number, std::span<std::byte> packed) override {
    const Range records = at(source_.chunks_, number).records;
    const TextChunk& chunk = source_.chunk_of(source_.text_, number);
    Index next = 0;
    bool refused = false;
    for_each_sparse_row(
        source_.text_, reader_, chunk,
        [&](const SparseRow& row) {
          // The label says whether it is a bad record, which may come behind the last good one.
          const Scalar label = source_.packing_.labels ? label_of(source_.schema_, row.label) : 0;
          if (next == records.size()) fail_changed(source_.text_, chunk);
          refused = true;
          if (source_.packing_.labels) check_label(label, row.label);
          refused = false;
          source_.packing_.pack(row, source_.schema_.first_index, label,
                                packed.data() + next++ * source_.packing_.record_bytes());
        },
        [&](const std::string& description) {
          if (refused) throw DataError(description);
        });
    if (next != records.size()) fail_changed(source_.text_, chunk);
  }

 private:
  void check_label(Scalar label, double number) const {
    if (rule_.allows(label)) return;
    throw BadRecord{
        -1, fmt::format("label {}", number),
        fmt::format("{}{}", rule_.expected(),
                    source_.schema_.classes.empty()
                        ? " (data.columns = [\"label: categorical\"] makes classes 0, 1, ... of any)"
                        : "")};
  }

  const SparseSource& source_;
  TargetRule rule_;
  TextReader reader_;
};

SparseSource::SparseSource(const TableRequest& request) {
  PeerGroup& peers = request.peers;
  const TableOptions& options = request.options;
  peers.agree([&] { check_request(request); });
  const bool learns = request.schema.empty();
  const bool may_be_empty = !request.labels;
  text_ = {.files = look_at_text_files(request.paths, {.quotes = false, .may_be_empty = may_be_empty}, peers),
           .chunk_bytes = options.chunk_kib * 1024,
           .dialect = {.quotes = false}};
  peers.agree([&] {
    if (!learns) schema_ = parse_sparse_schema(request.schema);
  });
  const SparseScan scan = scan_sparse(
      text_, {.action = options.on_bad_record, .most = options.max_bad_share},
      [&](const SparseRow& row) {
        if (!learns && request.labels) label_of(schema_, row.label);
      },
      peers);
  peers.agree([&] {
    if (scan.good == 0 && !may_be_empty) throw DataError("'{}' holds no records", request.name);
    if (scan.good == 0) notes_.push_back({fmt::format("'{}' holds no records", request.name)});
    if (learns) schema_ = learn(scan, request);
    // All features would be shifted by one.
    error_if<DataError>(
        scan.smallest < schema_.first_index,
        "'{}' has an index 0, but the training data counts features from 1: are those of '{}' counted from "
        "0? "
        "Write it again with indices from 1 (scikit-learn: dump_svmlight_file with zero_based = False)",
        request.name, request.name);
  });
  packing_ = {.features = schema_.features, .max_values = scan.max_values, .labels = request.labels};
  info_ = {.rows = scan.good,
           .features = {{schema_.features}},
           .target_columns = request.labels ? 1 : 0,
           .name = request.name,
           .record_bytes = packing_.record_bytes(),
           .source_bytes = text_.source_bytes()};
  for (const double value : schema_.classes) info_.class_names.push_back(fmt::format("{}", value));
  notes_.push_back(
      {.text = fmt::format("{}: {} features, counted from {} in the file; at most {} of them in a record",
                           request.name, with_commas(schema_.features), schema_.first_index,
                           with_commas(scan.max_values)),
       .figures = {
           {"features",
            {{"features", schema_.features}, {"first", schema_.first_index}, {"most", scan.max_values}}}}});
  if (scan.queries)
    notes_.push_back({fmt::format("{}: the queries of its records (qid) are left out", request.name)});
  if (scan.largest - schema_.first_index >= schema_.features) {
    notes_.push_back(
        {fmt::format("{}: features that the training data does not have are left out", request.name)});
  }
  take_records(scan, text_, request.name);
}

std::unique_ptr<ChunkReader> SparseSource::reader(const TargetRule& rule) const {
  return std::make_unique<Reader>(*this, rule);
}

FormatEntry libsvm_format() {
  return {
      .name = "libsvm",
      .help =
          "sparse records as text, raw or gzip: \"LABEL INDEX:VALUE ...\", counted from 0 if the training "
          "data has an index 0, else from 1; data.columns = [\"label: categorical\"] makes classes of labels",
      .extensions = kLibsvmExtensions,
      .options = {"data.train", "data.validation", "data.test", "data.columns", "data.positive",
                  "data.on_bad_record", "data.max_bad_share", "data.chunk_kib"},
      .open = [](const OpenRequest& request) {
        return open_tables<SparseSource>(request, kLibsvmExtensions);
      }};
}

}  // namespace lockstep
