// The arithmetic that takes the time, behind one seam. Every call is single-threaded and its bits depend only
// on its operands: parallelism comes from replicas on several threads, never from inside a kernel. Products
// of matrices and convolutions come from the back end that the build was configured with (LOCKSTEP_KERNELS).
#pragma once

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

/// y(n x out) = x(n x in) · w(out x in)^T + bias in each row; an empty bias is none.
void multiply_forward(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y);
/// dx(n x in) = dy(n x out) · w(out x in)
void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx);
/// dw(out x in) (+)= dy(n x out)^T · x(n x in), these rows of it
void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
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

}  // namespace lockstep
