#include "lockstep/math/kernels.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

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

}  // namespace lockstep
