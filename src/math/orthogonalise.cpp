// One step is x := a x + (b x x^T + c (x x^T)^2) x: a polynomial of odd powers, which acts on each singular
// value alone. With these coefficients it drives all of them, also the small ones, to about 1 in few steps;
// they do not converge to it. All products are the kernels' of the layers, of which each sums in its own
// fixed order.
#include "lockstep/math/orthogonalise.h"

#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

constexpr int kSteps = 5;  // odd, so that the last one writes to `result`
constexpr Scalar kA = 3.4445F;
constexpr Scalar kB = -4.7750F;
constexpr Scalar kC = 2.0315F;

Index square_size(Index rows) {
  return round_up(rows * rows, kAlignment);
}

}  // namespace

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

}  // namespace lockstep
