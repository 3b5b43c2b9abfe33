#include "idx_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr Index kBufferBytes = Index{1} << 20;

std::uint64_t big_endian(const std::byte* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

template <class Bits, class Value>
void decode(const std::byte* bytes, std::span<Scalar> values) {
  static_assert(sizeof(Bits) == sizeof(Value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<Bits>(big_endian(bytes + i * sizeof(Bits), sizeof(Bits)));
    values[i] = static_cast<Scalar>(std::bit_cast<Value>(bits));
  }
}

constexpr std::array kElements{
    IdxElement{kIdxU8, 1, decode<std::uint8_t, std::uint8_t>},
    IdxElement{0x09, 1, decode<std::uint8_t, std::int8_t>},
    IdxElement{0x0B, 2, decode<std::uint16_t, std::int16_t>},
    IdxElement{0x0C, 4, decode<std::uint32_t, std::int32_t>},
    IdxElement{0x0D, 4, decode<std::uint32_t, float>},
    IdxElement{0x0E, 8, decode<std::uint64_t, double>},
};

const IdxElement* find_element(std::byte code) {
  for (const IdxElement& element : kElements) {
    if (element.code == std::to_integer<unsigned char>(code)) return &element;
  }
  return nullptr;
}

}  // namespace

IdxFile::IdxFile(const std::string& path, const std::string& key) : path_(path) {
  if (!std::filesystem::exists(path)) {
    throw DataError(fmt::format(
        "{} names '{}', which does not exist: correct the path, or fetch the data set", key, path));
  }
  ByteStream stream(path);
  file_bytes_ = stream.file_bytes();
  read_header(stream);
  compute_sizes();
  check_size(stream);
}

void IdxFile::read_header(ByteStream& stream) {
  std::array<std::byte, 4> magic{};
  const Index found = stream.read(magic);
  if (found < 4) {
    throw DataError(fmt::format("'{}' is not an IDX file: expected a header of at least 4 bytes, found {}{}",
                                path_, found, stream.cut_off()));
  }
  element_ = find_element(magic[2]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || element_ == nullptr ||
      magic[3] == std::byte{0}) {
    throw DataError(
        fmt::format("'{}' is not an IDX file: it starts with {:02x} {:02x} {:02x} {:02x}, expected 00 00, "
                    "then a type (08 u8, "
                    "09 i8, 0b i16, 0c i32, 0d f32, 0e f64), then the number of dimensions (1 or more)",
                    path_, magic[0], magic[1], magic[2], magic[3]));
  }
  std::vector<std::byte> sizes(4 * std::to_integer<std::size_t>(magic[3]));
  const Index size_bytes = stream.read(sizes);
  if (size_bytes < static_cast<Index>(sizes.size())) {
    throw DataError(fmt::format("'{}' is truncated in its header: expected {} bytes, found {}{}", path_,
                                4 + sizes.size(), 4 + size_bytes, stream.cut_off()));
  }
  for (std::size_t i = 0; i < sizes.size(); i += 4) {
    sizes_.push_back(static_cast<Index>(big_endian(sizes.data() + i, 4)));
  }
}

void IdxFile::compute_sizes() {
  bool overflows = false;
  for (std::size_t i = 1; i < sizes_.size(); ++i) {
    overflows |= __builtin_mul_overflow(elements_per_record_, sizes_[i], &elements_per_record_);
  }
  Index bytes = 0;
  overflows |= __builtin_mul_overflow(elements_per_record_, element_->bytes, &bytes);
  overflows |= __builtin_mul_overflow(bytes, records(), &data_bytes_);
  const std::string shape = fmt::format("{}", fmt::join(sizes_, "x"));
  if (overflows) {
    throw DataError(
        fmt::format("'{}' is damaged: its header states {} elements of {} bytes, more than any file holds",
                    path_, shape, element_->bytes));
  }
  if (data_bytes_ == 0) {
    throw DataError(fmt::format("'{}' holds no data: its header states {} elements", path_, shape));
  }
}

// Before any memory is taken: a raw file shows its size, a gzip file an upper bound of it.
void IdxFile::check_size(const ByteStream& stream) const {
  const Index available = stream.most_bytes() - header_bytes();
  if (available < data_bytes_) {
    if (!stream.compressed()) fail_truncated(available, "");
    throw DataError(
        fmt::format("'{}' is truncated or damaged: its header states {} records of {} bytes, but a gzip file "
                    "of {} bytes cannot "
                    "hold more than {} bytes; fetch or make the file again",
                    path_, with_commas(records()), with_commas(record_bytes()), with_commas(file_bytes_),
                    with_commas(stream.most_bytes())));
  }
  if (!stream.compressed() && available > data_bytes_) fail_surplus(with_commas(available - data_bytes_));
}

void IdxFile::for_each_record(const Visit& visit) const {
  ByteStream stream(path_);
  std::vector<std::byte> buffer(static_cast<std::size_t>(header_bytes()));
  stream.read(buffer);
  const Index per_read = std::min(records(), std::max(Index{1}, kBufferBytes / record_bytes()));
  buffer.resize(static_cast<std::size_t>(per_read * record_bytes()));
  for (Index first = 0; first < records(); first += per_read) {
    const Index count = std::min(per_read, records() - first);
    const Index wanted = count * record_bytes();
    const Index found = stream.read(std::span(buffer).first(static_cast<std::size_t>(wanted)));
    if (found < wanted) fail_truncated(first * record_bytes() + found, stream.cut_off());
    for (Index i = 0; i < count; ++i) visit(first + i, buffer.data() + i * record_bytes());
  }
  // One byte more: it would be too many, and asking for it makes zlib compare the check sum at the end.
  std::array<std::byte, 1> surplus{};
  if (stream.read(surplus) > 0) fail_surplus("more");
  const std::string note = stream.cut_off();
  if (!note.empty()) {
    throw DataError(
        fmt::format("'{}' is truncated: its records are whole, its check sum is not{}", path_, note));
  }
}

void IdxFile::fail_truncated(Index bytes_found, const std::string& note) const {
  const Index whole = bytes_found / record_bytes();
  throw DataError(
      fmt::format("'{}' is truncated: record {} of {} is incomplete: expected {} bytes, found {}{}; fetch or "
                  "make the file again",
                  path_, with_commas(whole), with_commas(records()), with_commas(record_bytes()),
                  with_commas(bytes_found - whole * record_bytes()), note));
}

void IdxFile::fail_surplus(const std::string& found) const {
  throw DataError(
      fmt::format("'{}' does not fit its header: expected the end after {} records of {} bytes, found {} "
                  "bytes; fetch or make "
                  "the file again",
                  path_, with_commas(records()), with_commas(record_bytes()), found));
}

}  // namespace lockstep
