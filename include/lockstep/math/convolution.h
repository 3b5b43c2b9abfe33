// Convolution in two dimensions, single-threaded, with bits that depend only on the operands.
//
// Activations are channels-last: a row of a matrix is one sample, height x width x channels, so layers that
// work scalar by scalar or channel by channel need no other layout and nothing is reordered between two
// convolutions. Weights and their gradient are as PyTorch has them: [out][in / groups][height][width].
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// Output channels come in `groups` equal parts, each of which sees only its part of the input channels
/// (depthwise: as many groups as input channels). Requires that groups divides both numbers of channels.
struct ConvolutionShape {
  Index in_height = 1;
  Index in_width = 1;
  Index in_channels = 1;
  Index out_channels = 1;
  Window vertical = {};
  Window horizontal = {};
  Index groups = 1;

  auto operator<=>(const ConvolutionShape&) const = default;

  Index out_height() const { return vertical.positions(in_height); }
  Index out_width() const { return horizontal.positions(in_width); }
  /// Scalars of one sample.
  Index in_size() const { return in_height * in_width * in_channels; }
  Index out_size() const { return out_height() * out_width() * out_channels; }
  /// Weights that one output channel has: in / groups x height x width.
  Index fan_in() const { return in_channels / groups * vertical.size * horizontal.size; }
  Index weight_count() const { return out_channels * fan_in(); }
  /// Floating-point operations of one sample in the forward pass, taps in the padding included.
  Index flops() const { return 2 * out_size() * fan_in(); }
};

/// The weights of a convolution. A back end that wants another layout may keep it, in each thread, for the
/// next calls with the same version at the same offset: their values must be the same, too. Version 0 says
/// nothing of them.
template <class Number>
struct ConvolutionWeights {
  std::span<const Number> values;
  Index offset = 0;
  std::uint64_t version = 0;
};

/// The destination of the gradient; `bias` is empty if there is none.
struct ConvolutionGradient {
  std::span<Scalar> weights;
  std::span<Scalar> bias;
  Write write = Write::kReplace;
};

/// y(n x out) = x(n x in) convolved with the weights, plus the bias (one per output channel, empty if there
/// is none)
void convolution_forward(const ConvolutionShape& shape, const ConstMatrix& x,
                         const ConvolutionWeights<Scalar>& w, std::span<const Scalar> bias, Matrix& y);
void convolution_forward(const ConvolutionShape& shape, const Bf16Matrix& x,
                         const ConvolutionWeights<Bf16>& w, std::span<const Scalar> bias, Matrix& y);
/// dx(n x in) from dy(n x out)
void convolution_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                               const ConvolutionWeights<Scalar>& w, Matrix& dx);
void convolution_backward_data(const ConvolutionShape& shape, const Bf16Matrix& dy,
                               const ConvolutionWeights<Bf16>& w, Matrix& dx);
/// gradient (+)= the sum over the n samples
void convolution_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                  const ConvolutionGradient& gradient);
/// dweights (+)= the sum over the n samples. The gradient of the bias is a sum of dy alone: see sum_rows().
void convolution_backward_weights(const ConvolutionShape& shape, const Bf16Matrix& x, const Bf16Matrix& dy,
                                  std::span<Scalar> dweights, Write write);

}  // namespace lockstep
