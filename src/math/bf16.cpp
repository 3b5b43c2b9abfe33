#include "lockstep/math/bf16.h"

#include <cassert>

namespace lockstep {

// The rounding is written out: compilers vectorise it, and Eigen's cast is several times slower.
void round_to_bf16(std::span<const Scalar> values, std::span<Bf16> rounded) {
  assert(values.size() == rounded.size());
  constexpr std::uint32_t kQuiet = 0x40;  // keeps a NaN from becoming infinite when its lower half is cut off
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t upper = bits >> 16;
    const std::uint32_t nearest = (bits + 0x7fff + (upper & 1)) >> 16;
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    rounded[i].bits = static_cast<std::uint16_t>(nan ? upper | kQuiet : nearest);
  }
}

}  // namespace lockstep
