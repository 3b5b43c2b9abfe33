#include "record.h"

#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value % 2 == 1 ? (value / 2) ^ kReversedPolynomial : value / 2;
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

// The checksum of data that itself has checksums in it is masked, so that it does not meet itself.
std::uint32_t masked(std::uint32_t checksum) {
  return ((checksum >> 15) | (checksum << 17)) + 0xA282EAD8U;
}

template <class Number>
std::string little_endian(Number value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return bytes;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes) {
    value = kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (value >> 8);
  }
  return ~value;
}

std::string tf_record(std::string_view content) {
  const std::string length = little_endian(std::uint64_t{content.size()});
  std::string record = length + little_endian(masked(crc32c(length)));
  record += content;
  return record + little_endian(masked(crc32c(content)));
}

}  // namespace lockstep
