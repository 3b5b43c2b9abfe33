// Memory that each thread keeps for the layer at work and that only grows, so that a step after the first
// allocates nothing; and the arithmetic on rows that layers share.
#pragma once

#include <array>
#include <numeric>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"

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

}  // namespace lockstep
