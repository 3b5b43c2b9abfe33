#include "depthwise.h"

#include <algorithm>

#include "lockstep/math/eigen_matrix.h"
#include "math/taps.h"
#include "patches.h"

namespace lockstep {
namespace {

WindowWalk walk_of(const ConvolutionShape& s) {
  return {.height = s.in_height, .width = s.in_width, .vertical = s.vertical, .horizontal = s.horizontal};
}

// [channel][height][width] as [height][width][channel]
const Scalar* arrange(const ConvolutionShape& s, std::span<const Scalar> weights) {
  Scalar* arranged = scratch(ScratchUse::kWeights, s.weight_count());
  Matrix by_taps(arranged, s.fan_in(), s.out_channels);
  as_eigen(by_taps) = as_eigen(as_matrix(weights, s.out_channels, s.fan_in())).transpose();
  return arranged;
}

}  // namespace

bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups == shape.in_channels && shape.groups == shape.out_channels;
}

void depthwise_forward(const ConvolutionShape& shape, const ConstMatrix& x, std::span<const Scalar> weights,
                       Matrix& y) {
  const Scalar* arranged = arrange(shape, weights);
  const Index channels = shape.in_channels;
  std::ranges::fill(y.values(), Scalar{0});
  for (Index sample = 0; sample < x.rows(); ++sample) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* in = x.data() + sample * x.cols() + tap.in * channels;
      const Scalar* w = arranged + tap.weight * channels;
      Scalar* out = y.data() + sample * y.cols() + tap.out * channels;
      for (Index c = 0; c < channels; ++c) out[c] += in[c] * w[c];
    });
  }
}

void depthwise_backward_data(const ConvolutionShape& shape, const ConstMatrix& dy,
                             std::span<const Scalar> weights, Matrix& dx) {
  const Scalar* arranged = arrange(shape, weights);
  const Index channels = shape.in_channels;
  std::ranges::fill(dx.values(), Scalar{0});
  for (Index sample = 0; sample < dy.rows(); ++sample) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* out = dy.data() + sample * dy.cols() + tap.out * channels;
      const Scalar* w = arranged + tap.weight * channels;
      Scalar* in = dx.data() + sample * dx.cols() + tap.in * channels;
      for (Index c = 0; c < channels; ++c) in[c] += out[c] * w[c];
    });
  }
}

void depthwise_backward_weights(const ConvolutionShape& shape, const ConstMatrix& x, const ConstMatrix& dy,
                                const ConvolutionGradient& gradient) {
  Matrix sums(scratch(ScratchUse::kWeights, shape.weight_count()), shape.fan_in(), shape.out_channels);
  const Index channels = shape.in_channels;
  std::ranges::fill(sums.values(), Scalar{0});
  for (Index sample = 0; sample < x.rows(); ++sample) {
    walk_taps(walk_of(shape), [&](const Tap& tap) {
      const Scalar* in = x.data() + sample * x.cols() + tap.in * channels;
      const Scalar* out = dy.data() + sample * dy.cols() + tap.out * channels;
      Scalar* dw = sums.data() + tap.weight * channels;
      for (Index c = 0; c < channels; ++c) dw[c] += in[c] * out[c];
    });
  }
  Matrix weights = as_matrix(gradient.weights, shape.out_channels, shape.fan_in());
  if (gradient.write == Write::kReplace) {
    as_eigen(weights) = as_eigen(sums).transpose();
  } else {
    as_eigen(weights) += as_eigen(sums).transpose();
  }
}

}  // namespace lockstep
