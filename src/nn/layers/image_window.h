// The window of conv2d and of the poolings: how it is written, and where it falls on an image.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/terms.h"
#include "lockstep/math/pooling.h"
#include "lockstep/math/shape.h"

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

/// The padding as ONNX lists it.
std::vector<Index> onnx_padding(const Window& vertical, const Window& horizontal);

}  // namespace lockstep
