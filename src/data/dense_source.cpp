#include "dense_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Small, so that a shuffle buffer mixes many positions of a file; large enough that a disk is read in long
// runs.
constexpr Index kChunkBytes = Index{1} << 19;

// Image rows x columns of `planes` channels, from channels first to channels last.
template <class T>
void interleave(const T* from, Index count, Index planes, T* to) {
  const Index pixels = count / planes;
  for (Index plane = 0; plane < planes; ++plane) {
    for (Index pixel = 0; pixel < pixels; ++pixel) to[pixel * planes + plane] = from[plane * pixels + pixel];
  }
}

// Turns a field of records into what is packed.
class FieldReader {
 public:
  explicit FieldReader(const DenseField& field)
      : field_(field),
        file_(field.file),
        scalars_(static_cast<std::size_t>(field.count)),
        turned_(field.planes > 1 ? scalars_.size() : 0) {}

  void read(Range records) {
    records_ = records;
    bytes_ = file_.read(records);
  }

  /// The field of record `i` of those read, as the file has it.
  const std::byte* at(Index i) const { return bytes_.data() + i * field_.file.record_bytes + field_.offset; }

  void copy_bytes(Index i, std::byte* to) const {
    if (field_.planes > 1) {
      interleave(at(i), field_.count, field_.planes, to);
    } else {
      std::memcpy(to, at(i), static_cast<std::size_t>(field_.count));
    }
  }

  std::span<const Scalar> scalars(Index i) {
    field_.element->decode(at(i), scalars_);
    if (field_.planes == 1) return scalars_;
    interleave(scalars_.data(), field_.count, field_.planes, turned_.data());
    return turned_;
  }

  /// Reports the first number of record `i` that is not finite as a scalar.
  [[noreturn]] void fail_number(Index i) const {
    const std::byte* bytes = at(i);
    while (std::isfinite(static_cast<Scalar>(field_.element->number(bytes)))) bytes += field_.element->bytes;
    const double number = field_.element->number(bytes);
    fail(i, fmt::format("{:g}", number),
         std::isfinite(number) ? "a number that single precision can hold" : "a finite number");
  }

  [[noreturn]] void fail(Index i, const std::string& found, const std::string& expected) const {
    throw DataError(fmt::format("'{}', record {}: found {}, expected {}", field_.file.path,
                                with_commas(records_.begin + i), found, expected));
  }

 private:
  const DenseField& field_;
  RecordFileReader file_;
  Range records_;
  std::span<const std::byte> bytes_;
  std::vector<Scalar> scalars_;
  std::vector<Scalar> turned_;
};

void store(std::span<const Scalar> values, std::byte* to) {
  std::memcpy(to, values.data(), values.size_bytes());
}

class DenseReader final : public ChunkReader {
 public:
  DenseReader(const DenseFields& fields, const DenseLayout& layout, std::span<const Chunk> chunks,
              const TargetRule& rule)
      : layout_(layout), chunks_(chunks), rule_(rule), features_(fields.features) {
    if (fields.targets) targets_.emplace(*fields.targets);
  }

  void read(Index chunk, std::span<std::byte> packed) override {
    const Range records = at(chunks_, chunk).records;
    if (targets_) targets_->read(records);
    features_.read(records);
    std::byte* to = packed.data();
    for (Index i = 0; i < records.size(); ++i, to += layout_.record_bytes()) {
      if (targets_) pack_targets(i, to + layout_.feature_bytes());
      pack_features(i, to);
    }
  }

 private:
  void pack_features(Index i, std::byte* to) {
    if (layout_.byte_features) return features_.copy_bytes(i, to);
    const std::span<const Scalar> values = features_.scalars(i);
    if (!std::ranges::all_of(values, [](Scalar value) { return std::isfinite(value); }))
      features_.fail_number(i);
    store(values, to);
  }

  void pack_targets(Index i, std::byte* to) {
    const std::span<const Scalar> values = targets_->scalars(i);
    const auto bad = std::ranges::find_if_not(values, [&](Scalar value) { return rule_.allows(value); });
    if (bad != values.end()) targets_->fail(i, fmt::format("label {}", *bad), rule_.expected());
    store(values, to);
  }

  DenseLayout layout_;
  std::span<const Chunk> chunks_;
  TargetRule rule_;
  FieldReader features_;
  std::optional<FieldReader> targets_;
};

}  // namespace

std::vector<Chunk> even_chunks(Index rows, Index record_bytes, bool follow_on) {
  const Index per_chunk = std::max<Index>(1, kChunkBytes / std::max<Index>(1, record_bytes));
  std::vector<Chunk> chunks;
  for (Index begin = 0; begin < rows; begin += per_chunk) {
    chunks.push_back(
        {.records = {begin, std::min(begin + per_chunk, rows)}, .follows_on = follow_on && begin > 0});
  }
  return chunks;
}

DenseSource::DenseSource(DenseFields fields) : fields_(std::move(fields)) {
  const RecordFile& file = fields_.features.file;
  layout_ = {.byte_features = fields_.features.element->is_byte(),
             .features = fields_.features.count,
             .targets = fields_.targets ? fields_.targets->count : 0};
  info_ = {.rows = file.records,
           .features = fields_.shape,
           .target_columns = layout_.targets,
           .name = file.path,
           .record_bytes = layout_.record_bytes(),
           .source_bytes = file.file_bytes};
  bool compressed = file.compressed;
  if (fields_.targets) {
    const RecordFile& labels = fields_.targets->file;
    if (files().size() > 1) info_.source_bytes += labels.file_bytes;
    compressed |= labels.compressed;
  }
  chunks_ = even_chunks(info_.rows, info_.record_bytes, compressed);
}

std::vector<std::string> DenseSource::files() const {
  std::vector<std::string> files{split_array_path(fields_.features.file.path).file};
  if (!fields_.targets) return files;
  const std::string labels = split_array_path(fields_.targets->file.path).file;
  if (labels != files.front()) files.push_back(labels);
  return files;
}

std::unique_ptr<ChunkReader> DenseSource::reader(const TargetRule& rule) const {
  return std::make_unique<DenseReader>(fields_, layout_, chunks_, rule);
}

}  // namespace lockstep
