// Operands for tests of kernels, and the questions that each kernel must answer: close to a sum in double,
// the same bits on any thread, no threads of its own.
#pragma once

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/convolution.h"
#include "lockstep/math/matrix.h"
#include "support/common.h"

namespace lockstep::test {

/// An aligned matrix with memory of its own.
class Operand {
 public:
  Operand(Index rows, Index columns) : memory_(rows * columns), rows_(rows), columns_(columns) {}
  /// Uniform in [-1, 1].
  Operand(Index rows, Index columns, std::mt19937_64& rng);
  Operand(const Operand& other);

  Matrix matrix() { return {memory_.data(), rows_, columns_}; }
  ConstMatrix view() const { return {memory_.data(), rows_, columns_}; }
  std::span<Scalar> values() { return memory_.span(); }
  std::span<const Scalar> values() const { return memory_.span(); }
  Scalar& operator[](Index i) { return memory_.data()[i]; }
  Scalar operator[](Index i) const { return memory_.data()[i]; }

 private:
  AlignedBuffer<Scalar> memory_;
  Index rows_;
  Index columns_;
};

/// Sums in double of products of scalars, and of their magnitudes: the yardstick of rounding errors.
class Sums {
 public:
  explicit Sums(Index size) : sums_(static_cast<std::size_t>(size)), magnitudes_(sums_) {}

  void add(Index i, double term);
  /// Each of `found` is the sum, up to float rounding.
  void expect_near(std::span<const Scalar> found) const;

 private:
  std::vector<double> sums_;
  std::vector<double> magnitudes_;
};

using Bits = std::vector<std::uint32_t>;
/// The bits of `values`, so that NaN equals itself and -0 is not 0.
Bits bits(std::span<const Scalar> values);
/// Of all of these, one after the other.
Bits bits(std::initializer_list<const Operand*> operands);

/// A convolution of square images with this side.
ConvolutionShape square(Index side, Index in, Index out, const Window& window, Index groups = 1);
/// Convolutions that kernels treat differently: with strides, groups, dilation, of one pixel.
std::vector<ConvolutionShape> usual_convolutions();

/// `results` of several calls, which all must have the same bits: here, here again after `others`, and on two
/// threads at once.
void expect_same_bits(const std::function<Bits()>& results, const std::function<void()>& others);

/// Runs `calls` here and on two threads, and counts the threads of the process while they live.
void expect_no_threads_gained(const std::function<void()>& calls);

}  // namespace lockstep::test
