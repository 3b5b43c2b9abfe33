#include "dense_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
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
    if (!field_.pieces.empty()) return decode_pieces(i);
    field_.element->decode(at(i), scalars_);
    if (field_.planes == 1) return scalars_;
    interleave(scalars_.data(), field_.count, field_.planes, turned_.data());
    return turned_;
  }

  /// Reports the first number of record `i` that is not finite as a scalar.
  void fail_number(Index i) const {
    const DensePiece whole{.count = field_.count, .element = field_.element};
    for (const DensePiece& piece : field_.pieces.empty() ? std::span(&whole, 1) : std::span(field_.pieces)) {
      for (Index k = 0; k < piece.count; ++k) {
        const double number = piece.element->number(at(i) + piece.offset + k * piece.element->bytes);
        if (std::isfinite(static_cast<Scalar>(number))) continue;
        fail(i, fmt::format("{:g}", number),
             std::isfinite(number) ? "a number that single precision can hold" : "a finite number");
      }
    }
  }

  [[noreturn]] void fail(Index i, const std::string& found, const std::string& expected) const {
    throw DataError("'{}', record {}: found {}, expected {}", field_.file.path,
                    with_commas(records_.begin + i), found, expected);
  }

 private:
  std::span<const Scalar> decode_pieces(Index i) {
    std::span<Scalar> rest = scalars_;
    for (const DensePiece& piece : field_.pieces) {
      const auto count = static_cast<std::size_t>(piece.count);
      piece.element->decode(at(i) + piece.offset, rest.first(count));
      rest = rest.subspan(count);
    }
    return scalars_;
  }

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

// The length of record `i`, which has so many positions.
Scalar length_of(FieldReader& lengths, Index i, Index positions) {
  const Scalar length = lengths.scalars(i)[0];
  if (!(length >= 1 && length <= static_cast<Scalar>(positions)) || length != std::floor(length)) {
    lengths.fail(i, fmt::format("length {}", length),
                 fmt::format("a whole number from 1 to {}, the positions of a record", positions));
  }
  return length;
}

class DenseReader final : public ChunkReader {
 public:
  DenseReader(const DenseFields& fields, const DenseLayout& layout, std::span<const Chunk> chunks,
              const TargetRule& rule)
      : layout_(layout), chunks_(chunks), rule_(rule), ignored_(fields.ignored), features_(fields.features) {
    if (fields.targets) targets_.emplace(*fields.targets);
    if (fields.weights) weights_.emplace(*fields.weights);
    if (fields.lengths) lengths_.emplace(*fields.lengths);
    if (fields.shape.sequence) positions_ = fields.shape.dims[0];
  }

  void read(Index chunk, std::span<std::byte> packed) override {
    const Range records = at(chunks_, chunk).records;
    if (targets_) targets_->read(records);
    if (weights_) weights_->read(records);
    if (lengths_) lengths_->read(records);
    features_.read(records);
    std::byte* to = packed.data();
    for (Index i = 0; i < records.size(); ++i, to += layout_.record_bytes()) {
      std::byte* end = to + layout_.record_bytes();
      const Index length = lengths_ ? pack_length(i, end -= sizeof(Scalar)) : positions_;
      if (weights_) pack_weight(i, end - sizeof(Scalar));
      if (targets_) pack_targets(i, length, to + layout_.feature_bytes());
      pack_features(i, length, to);
    }
  }

 private:
  // The padding becomes 0, whatever it is.
  void pack_features(Index i, Index length, std::byte* to) {
    const Index counted = lengths_ ? layout_.features / positions_ * length : layout_.features;
    if (layout_.byte_features) {
      features_.copy_bytes(i, to);
      std::fill(to + counted, to + layout_.features, std::byte{0});
      return;
    }
    const std::span<const Scalar> values = features_.scalars(i).first(static_cast<std::size_t>(counted));
    if (!std::ranges::all_of(values, [](Scalar value) { return std::isfinite(value); }))
      features_.fail_number(i);
    if (rule_.rows > 0) check_rows(i, values);
    store(values, to);
    std::fill(to + values.size_bytes(), to + layout_.feature_bytes(), std::byte{0});
  }

  void check_rows(Index i, std::span<const Scalar> values) const {
    const auto is_row = [rows = static_cast<Scalar>(rule_.rows)](Scalar value) {
      return value >= 0 && value < rows && value == std::floor(value);
    };
    const auto bad = std::ranges::find_if_not(values, is_row);
    if (bad == values.end()) return;
    features_.fail(
        i, fmt::format("{:g} (number {} of the record, from 0)", *bad, bad - values.begin()),
        fmt::format("a whole number from 0 to {}, the rows of the embedding that the model begins with",
                    rule_.rows - 1));
  }

  // All targets of a record; NaN where there is none.
  std::span<const Scalar> targets_of(Index i) {
    const std::span<const Scalar> all = targets_->scalars(i);
    if (!ignored_) return all;
    present_.assign(all.begin(), all.end());
    std::ranges::replace(present_, *ignored_, kMissing);
    return present_;
  }

  // Targets of padding are missing.
  void pack_targets(Index i, Index length, std::byte* to) {
    const std::span<const Scalar> all = targets_of(i);
    const std::span<const Scalar> values = lengths_ ? rule_.counted(all, length) : all;
    const bool has_none = ignored_ && std::ranges::all_of(values, [](Scalar y) { return std::isnan(y); });
    if (has_none && rule_.any_missing != nullptr) rule_.any_missing->store(true, std::memory_order_relaxed);
    const auto bad = has_none ? std::nullopt : rule_.find_bad(values);
    if (bad) targets_->fail(i, bad->found, bad->expected);
    store(values, to);
    if (values.size() == all.size()) return;
    for (std::size_t k = values.size(); k < all.size(); ++k) store({&kMissing, 1}, to + k * sizeof(Scalar));
    if (rule_.any_missing != nullptr) rule_.any_missing->store(true, std::memory_order_relaxed);
  }

  Index pack_length(Index i, std::byte* to) {
    const Scalar length = length_of(*lengths_, i, positions_);
    store({&length, 1}, to);
    return static_cast<Index>(length);
  }

  void pack_weight(Index i, std::byte* to) {
    const std::span<const Scalar> weight = weights_->scalars(i);
    const bool usable = weight[0] == 0 || (weight[0] >= std::numeric_limits<Scalar>::min() &&
                                           weight[0] <= std::numeric_limits<Scalar>::max());
    if (!usable) {
      weights_->fail(i, fmt::format("weight {}", weight[0]),
                     "a number of 0 or more that single precision can hold");
    }
    store(weight, to);
  }

  static constexpr Scalar kMissing = std::numeric_limits<Scalar>::quiet_NaN();

  DenseLayout layout_;
  std::span<const Chunk> chunks_;
  TargetRule rule_;
  std::optional<Scalar> ignored_;
  std::vector<Scalar> present_;
  FieldReader features_;
  std::optional<FieldReader> targets_;
  std::optional<FieldReader> weights_;
  std::optional<FieldReader> lengths_;
  Index positions_ = 1;
};

// A division, as products with the two halves of 1 / 255, that with the upper one exact. That is faster, and
// the same number.
constexpr Scalar as_share_of_255(std::uint8_t value) {
  const auto exact = static_cast<Scalar>(value);
  return exact * 0x1.01p-8F + exact * 0x1.010102p-24F;
}

consteval bool equals_division() {
  for (int value = 0; value < 256; ++value) {
    if (as_share_of_255(static_cast<std::uint8_t>(value)) != static_cast<Scalar>(value) / Scalar{255}) {
      return false;
    }
  }
  return true;
}
static_assert(equals_division());

// Packed scalars lie at any address.
void copy_scalars(const std::byte* from, Index count, Scalar* to) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Scalar));
}

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
  const Index targets = fields_.targets ? fields_.targets->count : 0;
  layout_ = {.byte_features = fields_.features.is_byte(),
             .features = fields_.features.count,
             .labels = targets + (fields_.weights ? 1 : 0) + (fields_.lengths ? 1 : 0)};
  info_ = {.rows = file.records,
           .features = fields_.shape,
           .target_columns = targets,
           .weighted = fields_.weights.has_value(),
           .has_lengths = fields_.lengths.has_value(),
           .name = file.path,
           .record_bytes = layout_.record_bytes(),
           .source_bytes = 0};
  if (fields_.targets && fields_.targets->file.path != file.path)
    info_.label_file = fields_.targets->file.path;
  bool compressed = false;
  const auto add_file = [&](const DenseField& field) {
    compressed |= field.file.compressed;
    const std::string path = split_array_path(field.file.path).file;
    if (std::ranges::count(files_, path) > 0) return;
    files_.push_back(path);
    info_.source_bytes += field.file.file_bytes;
  };
  add_file(fields_.features);
  for (const auto& field : {fields_.targets, fields_.weights, fields_.lengths}) {
    if (field) add_file(*field);
  }
  chunks_ = even_chunks(info_.rows, info_.record_bytes, compressed);
}

std::vector<Note> DenseSource::notes() const {
  if (!fields_.lengths) return {};
  double counted = 0;
  try {
    for (const Scalar length : lengths()) counted += static_cast<double>(length);
  } catch (const DataError&) {
    return {};  // it is reported by all ranks together when they load the records
  }
  const auto rows = static_cast<double>(info_.rows);
  const Index positions = fields_.shape.dims[0];
  const double mean = counted / rows;
  const double share = 1 - mean / static_cast<double>(positions);
  return {
      {.text = fmt::format("'{}': {:.4g} of {} positions of a record count in the mean; {:.3g} % are padding",
                           info_.name, mean, positions, 100 * share),
       .figures = {{"padding", {{"mean", mean}, {"positions", positions}, {"share", share}}}}}};
}

std::vector<Scalar> DenseSource::lengths() const {
  std::vector<Scalar> all;
  if (!fields_.lengths) return all;
  FieldReader reader(*fields_.lengths);
  for (const Chunk& chunk : chunks_) {
    reader.read(chunk.records);
    for (Index i = 0; i < chunk.records.size(); ++i)
      all.push_back(length_of(reader, i, fields_.shape.dims[0]));
  }
  return all;
}

std::unique_ptr<ChunkReader> DenseSource::reader(const TargetRule& rule) const {
  return std::make_unique<DenseReader>(fields_, layout_, chunks_, rule);
}

void DenseLayout::unpack(std::span<const std::byte* const> records, Matrix& x, Matrix& y) const {
  constexpr std::size_t kAhead = 4;
  constexpr Index kLine = 64;
  for (std::size_t row = 0; row < records.size(); ++row) {
    // Records come in random order: the memory of one that will be unpacked soon is asked for.
    for (Index i = 0; row + kAhead < records.size() && i < record_bytes(); i += kLine)
      __builtin_prefetch(records[row + kAhead] + i);
    Scalar* to = x.data() + static_cast<Index>(row) * features;
    if (byte_features) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(records[row]);
      for (Index i = 0; i < features; ++i) to[i] = as_share_of_255(bytes[i]);
    } else {
      copy_scalars(records[row], features, to);
    }
    copy_scalars(records[row] + feature_bytes(), labels, y.data() + static_cast<Index>(row) * labels);
  }
}

}  // namespace lockstep
