// Convolution where each channel has a window of its own: too thin for products of matrices, so plain loops
// over the channels of a pixel.
#pragma once

#include "lockstep/math/convolution.h"

namespace lockstep {

bool is_depthwise(const ConvolutionShape& shape);

/// As convolution_forward and so on, without the bias.
void depthwise_forward(const ConvolutionShape& shape, const ConstMatrix& x, std::span<const Scalar> weights,
                       Matrix& y);
void depthwise_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                             std::span<const Scalar> weights, Matrix& dx);
void depthwise_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                const ConvolutionGradient& gradient);

}  // namespace lockstep
