#include "sparse_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "sparse_scan.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxSparseClasses = 10'000;

SparseSchema learn(const SparseScan& scan, const TableRequest& request) {
  SparseSchema schema;
  if (scan.largest < 0) throw DataError(fmt::format("no record of '{}' has a feature", request.name));
  schema.first_index = scan.smallest == 0 ? 0 : 1;
  schema.features = scan.largest - schema.first_index + 1;
  // The one column of a libsvm file that has a name.
  const std::vector<TableColumn> columns = declare_columns({.columns = request.options.columns}, {"label"});
  if (columns.front().kind != ColumnKind::kCategorical) return schema;
  if (scan.too_many_labels || scan.labels.size() > kMaxSparseClasses) {
    throw DataError(fmt::format("'{}' has more than {} different labels, too many for classes", request.name,
                                kMaxSparseClasses));
  }
  schema.classes.assign(scan.labels.begin(), scan.labels.end());
  return schema;
}

Scalar label_of(const SparseSchema& schema, double label) {
  if (schema.classes.empty()) return static_cast<Scalar>(label);
  const auto found = std::ranges::lower_bound(schema.classes, label);
  if (found == schema.classes.end() || *found != label) {
    throw BadRecord{-1, fmt::format("label {}", label), "a class of the training data"};
  }
  return static_cast<Scalar>(found - schema.classes.begin());
}

struct SparseParts {
  const TextFiles& text;
  const SparseSchema& schema;
  const SparsePacking& packing;
  const std::vector<Chunk>& chunks;
};

class SparseReader final : public ChunkReader {
 public:
  SparseReader(const SparseParts& parts, const TargetRule& rule)
      : parts_(parts), rule_(rule), reader_(parts.text) {}

  void read(Index number, std::span<std::byte> packed) override {
    const Range records = at(parts_.chunks, number).records;
    const TextChunk& chunk = at(parts_.text.chunks, number);
    Index next = 0;
    bool refused = false;
    for_each_sparse_row(
        parts_.text, reader_, chunk,
        [&](const SparseRow& row) {
          if (next == records.size()) fail_changed(parts_.text, chunk);
          Scalar label = 0;
          refused = true;
          if (parts_.packing.labels) label = checked_label(row.label);
          refused = false;
          parts_.packing.pack(row, parts_.schema.first_index, label,
                              packed.data() + next++ * parts_.packing.record_bytes());
        },
        [&](const std::string& description) {
          if (refused) throw DataError(description);
        });
    if (next != records.size()) fail_changed(parts_.text, chunk);
  }

 private:
  Scalar checked_label(double number) const {
    const Scalar label = label_of(parts_.schema, number);
    if (rule_.allows(label)) return label;
    throw BadRecord{
        -1, fmt::format("label {}", number),
        fmt::format("{}{}", rule_.expected(),
                    parts_.schema.classes.empty()
                        ? " (data.columns = [\"label: categorical\"] makes classes 0, 1, ... of any)"
                        : "")};
  }

  SparseParts parts_;
  TargetRule rule_;
  TextReader reader_;
};

// All features would be shifted by one.
[[noreturn]] void throw_other_base(const std::string& name) {
  throw DataError(fmt::format(
      "'{}' has an index 0, but the training data counts features from 1: are those of '{}' counted "
      "from 0? Write it again with indices from 1 (scikit-learn: dump_svmlight_file with zero_based = "
      "False)",
      name, name));
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
    throw DataError(fmt::format("the schema of the model is not that of libsvm files: {}", error.what()));
  }
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

SparseSource::SparseSource(const TableRequest& request) {
  PeerGroup& peers = request.peers;
  const TableOptions& options = request.options;
  peers.agree([&] { check_request(request); });
  text_ = index_text(request.paths, {.bytes = options.chunk_kib * 1024, .dialect = {.quotes = false}}, peers);
  const SparseScan scan =
      scan_sparse(text_, {.action = options.on_bad_record, .most = options.max_bad_share}, peers);
  peers.agree([&] {
    if (scan.good == 0) throw DataError(fmt::format("'{}' holds no records", request.name));
    schema_ = request.schema.empty() ? learn(scan, request) : parse_sparse_schema(request.schema);
    if (scan.smallest < schema_.first_index) throw_other_base(request.name);
  });
  packing_ = {.features = schema_.features, .max_values = scan.max_values, .labels = request.labels};
  chunks_ = chunks_of(text_, scan.chunk_rows);
  info_ = {.rows = scan.good,
           .features = {{schema_.features}},
           .target_columns = request.labels ? 1 : 0,
           .name = request.name,
           .record_bytes = packing_.record_bytes(),
           .source_bytes = text_.source_bytes()};
  for (const double value : schema_.classes) info_.class_names.push_back(fmt::format("{}", value));
  notes_.push_back(fmt::format("{}: {} features, counted from {} in the file; at most {} of them in a record",
                               request.name, with_commas(schema_.features), schema_.first_index,
                               with_commas(scan.max_values)));
  if (scan.queries)
    notes_.push_back(fmt::format("{}: the queries of its records (qid) are left out", request.name));
  if (scan.largest - schema_.first_index >= schema_.features) {
    notes_.push_back(
        fmt::format("{}: features that the training data does not have are left out", request.name));
  }
  rejects_ = scan.rejects;
  skipped_ = scan.bad_positions;
  note_bad_records(request.name, scan.good, scan.bad, notes_);
}

std::unique_ptr<ChunkReader> SparseSource::reader(const TargetRule& rule) const {
  return std::make_unique<SparseReader>(
      SparseParts{.text = text_, .schema = schema_, .packing = packing_, .chunks = chunks_}, rule);
}

void SparseSource::unpack(std::span<const Index>, std::span<const std::byte* const> records, Matrix& x,
                          Matrix& targets) const {
  for (Index row = 0; row < std::ssize(records); ++row) {
    packing_.unpack(at(records, row), x.data() + row * x.cols(), targets.data() + row * targets.cols());
  }
}

}  // namespace lockstep
