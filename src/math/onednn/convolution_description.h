// A convolution as oneDNN describes it.
#pragma once

#include <dnnl.hpp>

#include "lockstep/math/convolution.h"

namespace lockstep {

inline constexpr auto kDirect = dnnl::algorithm::convolution_direct;

struct ConvolutionKey {
  ConvolutionShape shape;
  Index rows = 0;
  bool has_bias = false;

  auto operator<=>(const ConvolutionKey&) const = default;
};

/// The types of the operands and of the result, each at its offset in the forward pass; the bias is f32.
struct ConvolutionTypes {
  dnnl::memory::data_type x, weights, y;
};

/// The tensors of a key and the geometry.
struct ConvolutionDescription {
  using Dims = dnnl::memory::dims;
  using Desc = dnnl::memory::desc;

  explicit ConvolutionDescription(const ConvolutionKey& key, const ConvolutionTypes& types);

  Desc x, y, weights, any_weights;
  Desc bias;  // stays empty where there is none
  Dims strides, dilations, pads_before, pads_after;
};

/// The forward primitive's description, which oneDNN also wants as a hint for each backward primitive.
dnnl::convolution_forward::primitive_desc forward_primitive(const ConvolutionDescription& d);

}  // namespace lockstep
