// The upper half of a float, rounded to nearest, ties to even: its whole range, with 8 bits of precision.
#include <Eigen/Core>
#include <bit>
#include <cstdint>

#include "entries.h"

namespace lockstep {
namespace {

using Half = Eigen::bfloat16;
using Halves = Eigen::Array<Half, Eigen::Dynamic, 1>;
using Floats = Eigen::Array<Scalar, Eigen::Dynamic, 1>;

class Bf16 final : public Wire {
 public:
  Index bytes(Index count) const override { return count * Index{sizeof(Half)}; }

  void encode(std::span<const Scalar> values, std::span<std::byte> message) override {
    const auto count = std::ssize(values);
    Eigen::Map<Halves>(reinterpret_cast<Half*>(message.data()), count) =
        Eigen::Map<const Floats>(values.data(), count).cast<Half>();
  }

  // By hand: compilers vectorise the shift, and Eigen's cast is several times slower.
  void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const override {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(message.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += factor * std::bit_cast<Scalar>(static_cast<std::uint32_t>(halves[i]) << 16);
    }
  }
};

}  // namespace

WireEntry bf16_entry() {
  return {.name = "bf16",
          .help = "bfloat16: half the bytes, the range of a float, 8 bits of precision",
          .options = {"distribute.error_feedback"},
          .make = [](const DistOptions&) { return std::make_unique<Bf16>(); }};
}

}  // namespace lockstep
