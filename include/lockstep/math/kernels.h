// The arithmetic that takes the time, behind one seam. Every call is single-threaded and its bits depend only
// on its operands: parallelism comes from replicas on several threads, never from inside a kernel. Products
// of matrices and convolutions come from the back end that the build was configured with (LOCKSTEP_KERNELS).
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

/// Fixes what Eigen would otherwise read from the machine (threads, cache sizes), since it decides the order
/// of sums. Call once at the start of the process.
void fix_kernel_settings();

/// The library behind the products and convolutions, "oneDNN 2.6.3 (avx512_core)". Two builds or machines
/// that differ in it give different bits.
std::string kernel_back_end();

/// Whether a kernel overwrites its result or adds to it.
enum class Write { kReplace, kAdd };

// bfloat16, the upper half of a float: its whole range, with 8 bits of precision.

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

// Kernels for operands in bf16 have the contracts of those in fp32, and give results in fp32. Products of two
// bf16 are exact in fp32, so only the operands are rounded.

/// Whether they run here: not at all; slower than in fp32, because CPU or back end have no arithmetic for
/// bf16; or with the CPU's own instructions. The last two differ in bits: the CPU flushes subnormal numbers
/// to zero, and adds in another order.
enum class Bf16Support { kNone, kEmulated, kNative };
Bf16Support bf16_support();

/// y(n x out) = x(n x in) · w(out x in)^T + bias in each row; an empty bias is none.
void multiply_forward(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y);
void multiply_forward(const Bf16Matrix& x, const Bf16Matrix& w, std::span<const Scalar> bias, Matrix& y);

/// dx(n x in) = dy(n x out) · w(out x in)
void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx);
void multiply_backward_data(const Bf16Matrix& dy, const Bf16Matrix& w, Matrix& dx);

/// dw(out x in) (+)= dy(n x out)^T · x(n x in), these rows of it
void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
                               Write write);
void multiply_backward_weights(const Bf16Matrix& dy, const Bf16Matrix& x, Range rows, Matrix& dw,
                               Write write);

/// The right side of several products, laid out as the back end reads it fastest. For one thread: the one
/// that calls pack().
class PackedMatrix {
 public:
  PackedMatrix();
  PackedMatrix(PackedMatrix&&) noexcept;
  ~PackedMatrix();

  /// Takes a copy of b(n x in), or only where it is: it stays as it is until the last product.
  void pack(const ConstMatrix& b);
  /// c(rows x in) = a(rows x n) · b
  void multiply(const ConstMatrix& a, Matrix& c);

 private:
  struct Layouts;
  std::unique_ptr<Layouts> layouts_;
};

/// to (columns x rows) = from (rows x columns) turned around; each row of `to` starts `stride` behind the one
/// before.
void transpose(const ConstMatrix& from, Scalar* to, Index stride);

/// Adds `bias` (one per column) to each row of y.
void add_to_rows(std::span<const Scalar> bias, Matrix& y);
/// sums (one per column) (+)= the sum of the rows of m, first row first.
void sum_rows(const ConstMatrix& m, std::span<Scalar> sums, Write write);

/// sum += term, element by element.
void add(std::span<Scalar> sum, std::span<const Scalar> term);
void add(std::span<const Scalar> a, std::span<const Scalar> b, std::span<Scalar> sum);
/// Whether each value is finite.
bool all_finite(std::span<const Scalar> values);
/// Whether each value is a number of at most `limit`.
bool all_within(std::span<const Scalar> values, Scalar limit);

/// Sums of squares are taken block by block, each of this many values (the last may be shorter).
inline constexpr Index kSquareBlock = 1024;

/// The sum of squares of each block, in double. So a range that is cut at the borders of blocks gives the
/// same bits in parts, on several ranks, as in one.
void sum_squares_of_blocks(std::span<const Scalar> values, std::span<double> sums);

// The iteration with which muon makes a matrix nearly orthogonal.

/// Numbers that orthogonalise() needs beside a matrix of so many rows and its result.
Index orthogonalise_scratch(Index rows);

/// Five Newton-Schulz steps (Jordan 2024, "Muon") in single precision: `x` (rows x columns, rows <= columns,
/// Frobenius norm at most 1) becomes a matrix with the same singular vectors, whose singular values lie about
/// between 0.7 and 1.2, and stands in `result`. `x` is used up. `scratch`: orthogonalise_scratch() numbers.
void orthogonalise(std::span<Scalar> x, std::span<Scalar> result, Index rows, Index columns,
                   std::span<Scalar> scratch);

}  // namespace lockstep
