#include "element.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace lockstep {
namespace {

template <class Bits, ByteOrder kOrder>
Bits read_bits(const std::byte* bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    const std::size_t position = kOrder == ByteOrder::kBig ? i : sizeof(Bits) - 1 - i;
    bits = bits << 8 | std::to_integer<std::uint64_t>(bytes[position]);
  }
  return static_cast<Bits>(bits);
}

template <class Bits, class Value, ByteOrder kOrder>
void decode(const std::byte* bytes, std::span<Scalar> values) {
  static_assert(sizeof(Bits) == sizeof(Value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = std::bit_cast<Value>(read_bits<Bits, kOrder>(bytes + i * sizeof(Bits)));
    values[i] = static_cast<Scalar>(value);
  }
}

// numpy's truth values: a byte, 0 or 1.
void decode_truth(const std::byte* bytes, std::span<Scalar> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = bytes[i] == std::byte{0} ? Scalar{0} : Scalar{1};
}

template <ByteOrder kOrder>
constexpr std::array kElements{
    Element{"u8", 1, decode<std::uint8_t, std::uint8_t, kOrder>},
    Element{"i8", 1, decode<std::uint8_t, std::int8_t, kOrder>},
    Element{"u16", 2, decode<std::uint16_t, std::uint16_t, kOrder>},
    Element{"i16", 2, decode<std::uint16_t, std::int16_t, kOrder>},
    Element{"u32", 4, decode<std::uint32_t, std::uint32_t, kOrder>},
    Element{"i32", 4, decode<std::uint32_t, std::int32_t, kOrder>},
    Element{"u64", 8, decode<std::uint64_t, std::uint64_t, kOrder>},
    Element{"i64", 8, decode<std::uint64_t, std::int64_t, kOrder>},
    Element{"f32", 4, decode<std::uint32_t, float, kOrder>},
    Element{"f64", 8, decode<std::uint64_t, double, kOrder>},
    Element{"bool", 1, decode_truth},
};

const Element* find(std::span<const Element> elements, std::string_view name) {
  const auto found = std::ranges::find(elements, name, &Element::name);
  return found == elements.end() ? nullptr : &*found;
}

}  // namespace

const Element* find_element(std::string_view name, ByteOrder order) {
  return order == ByteOrder::kBig ? find(kElements<ByteOrder::kBig>, name)
                                  : find(kElements<ByteOrder::kLittle>, name);
}

}  // namespace lockstep
