// The window of conv2d and of the poolings: how it is written, and where it falls on an image.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/terms.h"
#include "lockstep/math/pooling.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

/// For both axes. Padding is "valid" (none), "same" (as TensorFlow: as much as makes the output ceil(input /
/// stride) long, the smaller half before) or a number of pixels on each side.
struct WindowArguments {
  Index size = 1;
  Index stride = 1;
  Index dilation = 1;
  std::string padding = "valid";
};

struct ImageWindows {
  ImageShape image;
  Window vertical;
  Window horizontal;
};

/// Errors: ConfigError with the reason if `in` is no image, or the window does not fit.
ImageWindows place_windows(const WindowArguments& arguments, const Shape& in);

/// size, stride (default: size) and padding.
WindowArguments take_pooling(TermArguments& arguments);
PoolingShape pooling_shape(const ImageWindows& windows);
/// The output shape of a pooling of `in`.
Shape pooled(const Shape& in, const PoolingShape& pooling);

/// "stride_y" and "stride_x" and the like, as Operation has them.
using Attributes = std::vector<std::pair<std::string, double>>;
void append_axes(Attributes& attributes, const std::string& name, Index vertical, Index horizontal);
void append_padding(Attributes& attributes, const Window& vertical, const Window& horizontal);
Attributes pooling_attributes(const PoolingShape& pooling);

/// For ONNX, from the attributes of an Operation: "stride" gives {stride_y, stride_x}.
std::vector<Index> both_axes(const OnnxLayer& layer, const std::string& key);
std::vector<Index> onnx_padding(const OnnxLayer& layer);
std::vector<OnnxAttribute> onnx_pooling(const OnnxLayer& layer);

/// The number of an argument that may also be a word. Errors: ConfigError if it is below `least` or none;
/// `words` are what else it may be.
Index whole_number(std::string_view key, std::string_view text, Index least, std::string_view words);

}  // namespace lockstep
