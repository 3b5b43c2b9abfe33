#include <Eigen/Core>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

// The upper half of a float, rounded to nearest, ties to even: its whole range, with 8 bits of precision.

class Bf16Codec final : public Codec {
 public:
  Index bytes(Index count) const override { return count * Index{sizeof(Bf16)}; }

  void encode(std::span<const Scalar> values, std::span<std::byte> message) override {
    round_to_bf16(values, {reinterpret_cast<Bf16*>(message.data()), values.size()});
  }

  void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const override {
    const auto* rounded = reinterpret_cast<const Bf16*>(message.data());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += factor * widen(rounded[i]);
  }
};

// IEEE half precision, rounded to nearest, ties to even: 11 bits of precision, but nothing beyond 65504 and
// little below 6e-5. So a message has a scale of its own, a power of two (exact) that puts its largest number
// just below 2^15: nothing overflows, and a number a billion times smaller than the largest still arrives.
// Clamping to 65504 instead would turn an exploding gradient into one that looks harmless.

using Half = Eigen::half;
using Halves = Eigen::Array<Half, Eigen::Dynamic, 1>;
using Floats = Eigen::Array<Scalar, Eigen::Dynamic, 1>;

constexpr std::size_t kHeader = sizeof(Scalar);  // the factor on the halves of the message

// The power of two that brings the values below 2^15. Without a sign, floats are in the order of their bits,
// infinity and NaN last: with one of those among them the values go as they are.
int scale_exponent(std::span<const Scalar> values) {
  constexpr std::uint32_t kNoSign = 0x7fffffff;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  std::uint32_t largest = 0;
  for (const Scalar value : values)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & kNoSign);
  if (largest >= kInfinity) return 0;
  const int exponent = static_cast<int>(largest >> 23) - 127;
  return std::min(14 - exponent, 126);  // beyond, the scale or its inverse would be no normal float
}

class Fp16 final : public Codec {
 public:
  Index bytes(Index count) const override {
    return static_cast<Index>(kHeader) + count * Index{sizeof(Half)};
  }

  void encode(std::span<const Scalar> values, std::span<std::byte> message) override {
    const auto count = std::ssize(values);
    const int exponent = scale_exponent(values);
    const Scalar scale = std::ldexp(Scalar{1}, exponent);
    const Scalar back = std::ldexp(Scalar{1}, -exponent);
    std::memcpy(message.data(), &back, kHeader);
    Eigen::Map<Halves>(reinterpret_cast<Half*>(message.data() + kHeader), count) =
        (scale * Eigen::Map<const Floats>(values.data(), count)).cast<Half>();
  }

  void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const override {
    const auto count = std::ssize(values);
    Scalar back = 0;
    std::memcpy(&back, message.data(), kHeader);
    const auto* halves = reinterpret_cast<const Half*>(message.data() + kHeader);
    Eigen::Map<Floats>(values.data(), count) +=
        (factor * back) * Eigen::Map<const Halves>(halves, count).cast<Scalar>();
  }
};

}  // namespace

CodecEntry fp32_entry() {
  return {.name = "fp32",
          .help = "the numbers as they are; the only one with `reduction = \"ordered\"` and its same bits",
          .make = [](const DistOptions&) { return std::unique_ptr<Codec>(); }};
}

CodecEntry bf16_entry() {
  return {.name = "bf16",
          .help = "bfloat16: half the bytes, the range of a float, 8 bits of precision",
          .options = {"distribute.error_feedback"},
          .make = [](const DistOptions&) { return std::make_unique<Bf16Codec>(); }};
}

CodecEntry fp16_entry() {
  return {.name = "fp16",
          .help =
              "half precision: half the bytes, 11 bits of precision; each message is scaled by a power of "
              "two, so that nothing overflows",
          .options = {"distribute.error_feedback"},
          .make = [](const DistOptions&) { return std::make_unique<Fp16>(); }};
}

}  // namespace lockstep
