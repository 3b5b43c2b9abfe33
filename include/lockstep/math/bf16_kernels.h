// The products and convolutions of kernels.h and convolution.h with operands in bf16: the same contracts,
// sums and results in fp32. Products of two bf16 are exact in fp32, so only the operands are rounded.
#pragma once

#include "lockstep/math/bf16.h"
#include "lockstep/math/convolution.h"

namespace lockstep {

/// Whether the kernels below run here: not at all; slower than in fp32, because CPU or back end have no
/// arithmetic for bf16; or with the CPU's own instructions. The last two differ in bits: the CPU flushes
/// subnormal numbers to zero, and adds in another order.
enum class Bf16Support { kNone, kEmulated, kNative };
Bf16Support bf16_support();

/// y(n x out) = x(n x in) · w(out x in)^T + bias in each row; an empty bias is none.
void multiply_forward(const Bf16Matrix& x, const Bf16Matrix& w, std::span<const Scalar> bias, Matrix& y);
/// dx(n x in) = dy(n x out) · w(out x in)
void multiply_backward_data(const Bf16Matrix& dy, const Bf16Matrix& w, Matrix& dx);
/// dw(out x in) (+)= dy(n x out)^T · x(n x in), these rows of it
void multiply_backward_weights(const Bf16Matrix& dy, const Bf16Matrix& x, Range rows, Matrix& dw,
                               Write write);

/// y(n x out) = x(n x in) convolved with the weights, plus the bias (one per output channel, empty if there
/// is none)
void convolution_forward(const ConvolutionShape& shape, const Bf16Matrix& x,
                         const ConvolutionWeights<Bf16>& w, std::span<const Scalar> bias, Matrix& y);
/// dx(n x in) from dy(n x out)
void convolution_backward_data(const ConvolutionShape& shape, const Bf16Matrix& dy,
                               const ConvolutionWeights<Bf16>& w, Matrix& dx);
/// dweights (+)= the sum over the n samples. The gradient of the bias is a sum of dy alone: see sum_rows().
void convolution_backward_weights(const ConvolutionShape& shape, const Bf16Matrix& x, const Bf16Matrix& dy,
                                  std::span<Scalar> dweights, Write write);

}  // namespace lockstep
