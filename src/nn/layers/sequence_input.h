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

/// Room for so many rows in `buffer`, with any content.
inline Matrix matrix_in(AlignedBuffer<Scalar>& buffer, Index rows, Index columns) {
  if (buffer.size() < rows * columns) buffer = AlignedBuffer<Scalar>(rows * columns);
  return {buffer.data(), rows, columns};
}

/// The first numbers of each row of `from`, or of `to` where these are fewer, as the first ones of `to`.
inline void copy_first(const ConstMatrix& from, Matrix& to) {
  const Index size = std::min(from.cols(), to.cols());
  for (Index row = 0; row < to.rows(); ++row)
    std::copy_n(from.data() + row * from.cols(), size, to.data() + row * to.cols());
}

}  // namespace lockstep
