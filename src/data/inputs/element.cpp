#include "element.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace lockstep {
namespace {

// IEEE 754 half precision: a sign, 5 bits of exponent, 10 of fraction.
struct Half {
  std::uint16_t bits;

  operator Scalar() const {
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
};

// numpy's truth values: a byte, 0 or 1.
struct Truth {
  std::uint8_t byte;

  operator Scalar() const { return byte == 0 ? Scalar{0} : Scalar{1}; }
};

template <std::size_t kBytes>
using BitsOf =
    std::conditional_t<kBytes == 1, std::uint8_t,
                       std::conditional_t<kBytes == 2, std::uint16_t,
                                          std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

template <class Value, ByteOrder kOrder>
Value value_at(const std::byte* bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(Value); ++i) {
    const std::size_t position = kOrder == ByteOrder::kBig ? i : sizeof(Value) - 1 - i;
    bits = bits << 8 | std::to_integer<std::uint64_t>(bytes[position]);
  }
  return std::bit_cast<Value>(static_cast<BitsOf<sizeof(Value)>>(bits));
}

template <class Value, ByteOrder kOrder>
void decode(const std::byte* bytes, std::span<Scalar> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<Scalar>(value_at<Value, kOrder>(bytes + i * sizeof(Value)));
}

template <class Value, ByteOrder kOrder>
double number(const std::byte* bytes) {
  return static_cast<double>(value_at<Value, kOrder>(bytes));
}

template <class Value, ByteOrder kOrder>
constexpr Element element_of(std::string_view name) {
  return {name, sizeof(Value), decode<Value, kOrder>, number<Value, kOrder>};
}

template <ByteOrder kOrder>
constexpr std::array kElements{
    element_of<std::uint8_t, kOrder>("u8"),   element_of<std::int8_t, kOrder>("i8"),
    element_of<std::uint16_t, kOrder>("u16"), element_of<std::int16_t, kOrder>("i16"),
    element_of<std::uint32_t, kOrder>("u32"), element_of<std::int32_t, kOrder>("i32"),
    element_of<std::uint64_t, kOrder>("u64"), element_of<std::int64_t, kOrder>("i64"),
    element_of<Half, kOrder>("f16"),          element_of<float, kOrder>("f32"),
    element_of<double, kOrder>("f64"),        element_of<Truth, kOrder>("bool")};

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
