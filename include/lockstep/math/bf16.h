// bfloat16, the upper half of a float: its whole range, with 8 bits of precision.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "lockstep/math/matrix.h"

namespace lockstep {

/// The precision in which matrices and convolutions are multiplied. Sums, weights and everything else are
/// fp32.
enum class Precision { kFp32, kBf16 };

struct Bf16 {
  std::uint16_t bits;

  bool operator==(const Bf16&) const = default;
};

inline Scalar widen(Bf16 value) {
  return std::bit_cast<Scalar>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// To nearest, ties to even; NaN stays NaN, and what is nearer to 2^128 than to a bf16 becomes infinite.
/// Requires equal sizes.
void round_to_bf16(std::span<const Scalar> values, std::span<Bf16> rounded);

using Bf16Matrix = MatrixView<const Bf16>;

inline Bf16Matrix as_matrix(std::span<const Bf16> values, Index rows, Index columns) {
  return {values.data(), rows, columns};
}

}  // namespace lockstep
