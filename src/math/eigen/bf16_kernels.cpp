// Eigen's own products of bf16 add in bf16: here operands are widened, which is exact, and go through the
// kernels of fp32.
#include "lockstep/math/convolution.h"
#include "scratch.h"

namespace lockstep {
namespace {

ConstMatrix widened(const Bf16Matrix& m, ScratchUse use) {
  Scalar* values = scratch(use, m.size());
  for (Index i = 0; i < m.size(); ++i) values[i] = widen(m.data()[i]);
  return {values, m.rows(), m.cols()};
}

std::span<const Scalar> widened(std::span<const Bf16> weights) {
  const ConstMatrix wide = widened(as_matrix(weights, 1, std::ssize(weights)), ScratchUse::kWide);
  return {wide.data(), weights.size()};
}

}  // namespace

Bf16Support bf16_support() {
  return Bf16Support::kEmulated;
}

void multiply_forward(const Bf16Matrix& x, const Bf16Matrix& w, std::span<const Scalar> bias, Matrix& y) {
  multiply_forward(widened(x, ScratchUse::kWide), widened(w, ScratchUse::kOtherWide), bias, y);
}

void multiply_backward_data(const Bf16Matrix& dy, const Bf16Matrix& w, Matrix& dx) {
  multiply_backward_data(widened(dy, ScratchUse::kWide), widened(w, ScratchUse::kOtherWide), dx);
}

void multiply_backward_weights(const Bf16Matrix& dy, const Bf16Matrix& x, Range rows, Matrix& dw,
                               Write write) {
  multiply_backward_weights(widened(dy, ScratchUse::kWide), widened(x, ScratchUse::kOtherWide), rows, dw,
                            write);
}

void convolution_forward(const ConvolutionShape& shape, const Bf16Matrix& x,
                         const ConvolutionWeights<Bf16>& w, std::span<const Scalar> bias, Matrix& y) {
  convolution_forward(shape, widened(x, ScratchUse::kOtherWide), {.values = widened(w.values)}, bias, y);
}

void convolution_backward_data(const ConvolutionShape& shape, const Bf16Matrix& dy,
                               const ConvolutionWeights<Bf16>& w, Matrix& dx) {
  convolution_backward_data(shape, widened(dy, ScratchUse::kOtherWide), {.values = widened(w.values)}, dx);
}

void convolution_backward_weights(const ConvolutionShape& shape, const Bf16Matrix& x, const Bf16Matrix& dy,
                                  std::span<Scalar> dweights, Write write) {
  convolution_backward_weights(shape, widened(x, ScratchUse::kWide), widened(dy, ScratchUse::kOtherWide),
                               {.weights = dweights, .bias = {}, .write = write});
}

}  // namespace lockstep
