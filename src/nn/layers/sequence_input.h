// Sequences as the input of layers that mix positions, which see zeros for padding.
#pragma once

#include <algorithm>
#include <optional>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

/// Errors: ConfigError if `in` is no sequence.
inline SequenceShape expect_sequence(const Shape& in) {
  const std::optional<SequenceShape> sequence = as_sequence(in);
  if (sequence) return *sequence;
  throw ConfigError(
      "expected a sequence, positions x channels: put as_sequence(positions) before it, or set data.record = "
      "\"sequence\"");
}

/// Writes zeros where `samples`, with so many channels a position, have padding.
inline void clear_padding(const Lengths& lengths, Index channels, Matrix& samples) {
  if (!lengths.given()) return;
  for (Index row = 0; row < samples.rows(); ++row) {
    Scalar* sample = samples.data() + row * samples.cols();
    std::fill(sample + lengths[row] * channels, sample + samples.cols(), Scalar{0});
  }
}

/// The samples, or where they have padding a copy in `buffer` with zeros there.
inline ConstMatrix with_zeros(const ConstMatrix& samples, const Lengths& lengths, Index channels,
                              AlignedBuffer<Scalar>& buffer) {
  if (!lengths.given()) return samples;
  if (buffer.size() < samples.size()) buffer = AlignedBuffer<Scalar>(samples.size());
  Matrix copy(buffer.data(), samples.rows(), samples.cols());
  std::ranges::copy(samples.values(), copy.data());
  clear_padding(lengths, channels, copy);
  return copy;
}

}  // namespace lockstep
