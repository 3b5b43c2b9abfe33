// Data sets of two IDX files, one with the features and one with the labels: MNIST, Fashion-MNIST, EMNIST.
// The header of a file in the IDX format of the MNIST data sets (Y. LeCun, "The MNIST database of handwritten
// digits").
//
//   file   = 0x00 0x00 type count size^count element*
//   type   = 0x08 u8 | 0x09 i8 | 0x0B i16 | 0x0C i32 | 0x0D f32 | 0x0E f64         one byte
//   count  = number of dimensions                                                 one byte
//   size   = length of one dimension, the first being the number of records       32 bits
//
// Everything is big endian, the elements are in row-major order. The file may be packed with gzip.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "array_file.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

const Element* idx_element(std::byte code) {
  constexpr std::array<std::pair<int, const char*>, 6> kNames{
      {{0x08, "u8"}, {0x09, "i8"}, {0x0B, "i16"}, {0x0C, "i32"}, {0x0D, "f32"}, {0x0E, "f64"}}};
  const auto* const name =
      std::ranges::find(kNames, std::to_integer<int>(code), &std::pair<int, const char*>::first);
  return name == kNames.end() ? nullptr : find_element(name->second, ByteOrder::kBig);
}

void read_idx_header(ByteStream& stream, ArrayFile& file) {
  const std::string& path = file.records.path;
  std::array<std::byte, 4> magic{};
  const Index found = stream.read(magic);
  error_if<DataError>(found < 4, "'{}' is not an IDX file: expected a header of at least 4 bytes, found {}{}",
                      path, found, stream.cut_off());
  file.element = idx_element(magic[2]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || file.element == nullptr ||
      magic[3] == std::byte{0}) {
    throw DataError(
        "'{}' is not an IDX file: it starts with {:02x} {:02x} {:02x} {:02x}, expected 00 00, then a type "
        "(08 u8, 09 i8, 0b i16, 0c i32, 0d f32, 0e f64), then the number of dimensions (1 or more)",
        path, magic[0], magic[1], magic[2], magic[3]);
  }
  std::vector<std::byte> sizes(4 * std::to_integer<std::size_t>(magic[3]));
  const Index size_bytes = stream.read(sizes);
  error_if<DataError>(size_bytes < std::ssize(sizes),
                      "'{}' is truncated in its header: expected {} bytes, found {}{}", path,
                      4 + sizes.size(), 4 + size_bytes, stream.cut_off());
  const Element* const size = find_element("u32", ByteOrder::kBig);
  for (std::size_t i = 0; i < sizes.size(); i += 4)
    file.sizes.push_back(static_cast<Index>(size->number(sizes.data() + i)));
  file.records.offset = 4 + std::ssize(sizes);
}

}  // namespace

FormatEntry idx_format() {
  return array_format(
      "idx",
      "IDX files, raw or gzip, as MNIST comes: one with features (bytes are scaled to 0..1), one with "
      "labels",
      {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}, "file",
      [](const std::string& path, const std::string&) { return open_array_file(path, read_idx_header); });
}

}  // namespace lockstep
