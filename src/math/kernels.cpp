#include "lockstep/math/kernels.h"

#include <Eigen/Core>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

// Sizes of a common server core (32 KiB, 1 MiB, 16 MiB). What matters is that they are the same everywhere:
// Eigen cuts its products, and so the order of its sums, by them.
constexpr int kL1Bytes = 32 << 10;
constexpr int kL2Bytes = 1 << 20;
constexpr int kL3Bytes = 16 << 20;

// Doubles summed side by side in a sum of squares: fixed lanes, so the compiler may vectorise without
// reordering.
constexpr std::size_t kSquareLanes = 8;

double block_squares(std::span<const Scalar> block) {
  double lanes[kSquareLanes] = {};
  std::size_t i = 0;
  for (; i + kSquareLanes <= block.size(); i += kSquareLanes) {
    for (std::size_t lane = 0; lane < kSquareLanes; ++lane) {
      const double value = block[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < block.size(); ++i) lanes[i % kSquareLanes] += static_cast<double>(block[i]) * block[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Orthogonalisation, as muon wants it. One step is x := a x + (b x x^T + c (x x^T)^2) x: a polynomial of odd
// powers, which acts on each singular value alone. With these coefficients it drives all of them, also the
// small ones, to about 1 in few steps; they do not converge to it. All products are the kernels' of the
// layers, of which each sums in its own fixed order.

constexpr int kSteps = 5;  // odd, so that the last one writes to `result`
constexpr Scalar kA = 3.4445F;
constexpr Scalar kB = -4.7750F;
constexpr Scalar kC = 2.0315F;

Index square_size(Index rows) {
  return round_up(rows * rows, kAlignment);
}

}  // namespace

void fix_kernel_settings() {
  Eigen::setNbThreads(1);
  Eigen::setCpuCacheSizes(kL1Bytes, kL2Bytes, kL3Bytes);
}

// Square by square, so that the lines of both are used up while they are in the cache.
void transpose(const ConstMatrix& from, Scalar* to, Index stride) {
  constexpr Index kSide = 16;
  for (Index row = 0; row < from.rows(); row += kSide) {
    const Index rows_end = std::min(row + kSide, from.rows());
    for (Index column = 0; column < from.cols(); column += kSide) {
      const Index columns_end = std::min(column + kSide, from.cols());
      for (Index c = column; c < columns_end; ++c) {
        for (Index r = row; r < rows_end; ++r) to[c * stride + r] = from.data()[r * from.cols() + c];
      }
    }
  }
}

void add_to_rows(std::span<const Scalar> bias, Matrix& y) {
  for (Index row = 0; row < y.rows(); ++row) {
    Scalar* out = y.data() + row * y.cols();
    for (std::size_t i = 0; i < bias.size(); ++i) out[i] += bias[i];
  }
}

void sum_rows(const ConstMatrix& m, std::span<Scalar> sums, Write write) {
  if (write == Write::kReplace) std::ranges::fill(sums, Scalar{0});
  for (Index row = 0; row < m.rows(); ++row) {
    const Scalar* in = m.data() + row * m.cols();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += in[i];
  }
}

void add(std::span<Scalar> sum, std::span<const Scalar> term) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

void add(std::span<const Scalar> a, std::span<const Scalar> b, std::span<Scalar> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
}

bool all_within(std::span<const Scalar> values, Scalar limit) {
  std::int32_t beyond = 0;  // an integer as wide as a scalar lets compilers use whole vectors
  for (const Scalar value : values) beyond |= std::abs(value) <= limit ? 0 : 1;
  return beyond == 0;
}

bool all_finite(std::span<const Scalar> values) {
  return all_within(values, std::numeric_limits<Scalar>::max());
}

void sum_squares_of_blocks(std::span<const Scalar> values, std::span<double> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t start = i * kSquareBlock;
    sums[i] =
        block_squares(values.subspan(start, std::min<std::size_t>(kSquareBlock, values.size() - start)));
  }
}

Index orthogonalise_scratch(Index rows) {
  return 2 * square_size(rows);
}

void orthogonalise(std::span<Scalar> x, std::span<Scalar> result, Index rows, Index columns,
                   std::span<Scalar> scratch) {
  const Index square = square_size(rows);
  Matrix gram = as_matrix(part(scratch, {0, rows * rows}), rows, rows);
  Matrix polynomial = as_matrix(part(scratch, {square, square + rows * rows}), rows, rows);
  for (int step = 0; step < kSteps; ++step) {
    const ConstMatrix from = as_matrix(std::span<const Scalar>(x), rows, columns);
    Matrix to = as_matrix(result, rows, columns);
    multiply_forward(from, from, {}, gram);
    multiply_forward(gram, gram, {}, polynomial);
    as_array(polynomial) = kB * as_array(gram) + kC * as_array(polynomial);
    multiply_backward_data(polynomial, from, to);
    as_array(to) += kA * as_array(from);
    std::swap(x, result);
  }
}

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
