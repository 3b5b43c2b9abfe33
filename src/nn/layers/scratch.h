// Memory that each thread keeps for the layer at work and that only grows, so that a step after the first
// allocates nothing; the arithmetic on rows that layers share; and sequences as the input of layers that mix
// positions, which see zeros for padding.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

/// At least so many scalars, with any content, until the thread's next call.
inline Scalar* layer_scratch(Index size) {
  thread_local AlignedBuffer<Scalar> scratch;
  if (scratch.size() < size) scratch = AlignedBuffer<Scalar>(size);
  return scratch.data();
}

/// Rounded into `buffer`, an operand of a layer in bf16 beside its weights.
inline Bf16Matrix rounded_into(const ConstMatrix& m, AlignedBuffer<Bf16>& buffer) {
  if (buffer.size() < m.size()) buffer = AlignedBuffer<Bf16>(m.size());
  const std::span<Bf16> used = part(buffer.span(), {0, m.size()});
  round_to_bf16(m.values(), used);
  return {used.data(), m.rows(), m.cols()};
}

/// The input of the layer; valid until the thread's next call.
inline Bf16Matrix rounded_input(const ConstMatrix& x) {
  thread_local AlignedBuffer<Bf16> buffer;
  return rounded_into(x, buffer);
}

/// The gradient of its output; likewise.
inline Bf16Matrix rounded_output_gradient(const ConstMatrix& dy) {
  thread_local AlignedBuffer<Bf16> buffer;
  return rounded_into(dy, buffer);
}

/// The sum of term(i) for 0 <= i < count, in fixed lanes side by side: a single sum would wait for each
/// addition.
template <class Term>
double sum_of(Index count, const Term& term) {
  constexpr Index kLanes = 8;
  std::array<double, kLanes> lanes{};
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (Index lane = 0; lane < kLanes; ++lane) at(lanes, lane) += term(i + lane);
  }
  for (Index lane = 0; i < count; ++i, ++lane) at(lanes, lane) += term(i);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

/// Each sample of `from`, rows x columns in memory, becomes columns x rows in `to`.
inline void transpose_samples(const ConstMatrix& from, Index rows, Index columns, Matrix& to) {
  for (Index begin = 0; begin < from.size(); begin += from.cols())
    transpose(ConstMatrix(from.data() + begin, rows, columns), to.data() + begin, rows);
}

/// A factor for each feature: to[row][i] = from[row][i] * scale[i]
inline void scale_rows(const Scalar* from, const Scalar* scale, Index rows, Index size, Scalar* to) {
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < size; ++i) to[row * size + i] = from[row * size + i] * scale[i];
  }
}

/// sums[i] += a[row][i] * b[row][i], over the rows in order.
inline void add_products(const Scalar* a, const Scalar* b, Index rows, Index size, Scalar* sums) {
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < size; ++i) sums[i] += a[row * size + i] * b[row * size + i];
  }
}

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
