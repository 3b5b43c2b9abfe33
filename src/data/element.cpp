#include "element.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

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

template <class Bits, class Value, ByteOrder kOrder>
double number(const std::byte* bytes) {
  return static_cast<double>(std::bit_cast<Value>(read_bits<Bits, kOrder>(bytes)));
}

// IEEE 754 half precision: a sign, 5 bits of exponent, 10 of fraction.
Scalar half_to_scalar(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const Scalar sign = (bits & 0x8000) != 0 ? Scalar{-1} : Scalar{1};
  if (exponent == 0x1f) {
    using Limits = std::numeric_limits<Scalar>;
    return fraction != 0 ? Limits::quiet_NaN() : sign * Limits::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<Scalar>(fraction), -24);
  return sign * std::ldexp(static_cast<Scalar>(fraction + 0x400), exponent - 25);
}

template <ByteOrder kOrder>
void decode_half(const std::byte* bytes, std::span<Scalar> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = half_to_scalar(read_bits<std::uint16_t, kOrder>(bytes + 2 * i));
  }
}

template <ByteOrder kOrder>
double half_number(const std::byte* bytes) {
  return double{half_to_scalar(read_bits<std::uint16_t, kOrder>(bytes))};
}

// numpy's truth values: a byte, 0 or 1.
void decode_truth(const std::byte* bytes, std::span<Scalar> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = bytes[i] == std::byte{0} ? Scalar{0} : Scalar{1};
}

double truth_number(const std::byte* bytes) {
  return bytes[0] == std::byte{0} ? 0 : 1;
}

template <ByteOrder kOrder>
constexpr std::array kElements{
    Element{"u8", 1, decode<std::uint8_t, std::uint8_t, kOrder>, number<std::uint8_t, std::uint8_t, kOrder>},
    Element{"i8", 1, decode<std::uint8_t, std::int8_t, kOrder>, number<std::uint8_t, std::int8_t, kOrder>},
    Element{"u16", 2, decode<std::uint16_t, std::uint16_t, kOrder>,
            number<std::uint16_t, std::uint16_t, kOrder>},
    Element{"i16", 2, decode<std::uint16_t, std::int16_t, kOrder>,
            number<std::uint16_t, std::int16_t, kOrder>},
    Element{"u32", 4, decode<std::uint32_t, std::uint32_t, kOrder>,
            number<std::uint32_t, std::uint32_t, kOrder>},
    Element{"i32", 4, decode<std::uint32_t, std::int32_t, kOrder>,
            number<std::uint32_t, std::int32_t, kOrder>},
    Element{"u64", 8, decode<std::uint64_t, std::uint64_t, kOrder>,
            number<std::uint64_t, std::uint64_t, kOrder>},
    Element{"i64", 8, decode<std::uint64_t, std::int64_t, kOrder>,
            number<std::uint64_t, std::int64_t, kOrder>},
    Element{"f16", 2, decode_half<kOrder>, half_number<kOrder>},
    Element{"f32", 4, decode<std::uint32_t, float, kOrder>, number<std::uint32_t, float, kOrder>},
    Element{"f64", 8, decode<std::uint64_t, double, kOrder>, number<std::uint64_t, double, kOrder>},
    Element{"bool", 1, decode_truth, truth_number},
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
