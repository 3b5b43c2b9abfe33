// The window of convolutions and poolings: how it is written, and where it falls on an image, or on a
// sequence, which is an image of one row.
#pragma once

#include <string>
#include <vector>

#include "lockstep/math/shape.h"

namespace lockstep {

/// For both axes of an image, or for the positions of a sequence. Padding is "valid" (none), "same", which
/// makes the output ceil(input / stride) long, with the smaller half before, or a number on each side; of a
/// sequence also "causal": all before, so that no window sees what comes after its position. The half of
/// "same" is that of the padding needed (as in TensorFlow); of a sequence that of all that the window can
/// reach, so that the windows do not move where padding makes the sequence longer.
struct WindowArguments {
  Index size = 1;
  Index stride = 1;
  Index dilation = 1;
  std::string padding = "valid";
  bool over_time = false;  ///< of a sequence
};

struct ImageWindows {
  ImageShape image;
  Window vertical;
  Window horizontal;
};

/// Errors: ConfigError with the reason if `in` is no image (no sequence), or the window does not fit.
ImageWindows place_windows(const WindowArguments& arguments, const Shape& in);

// ONNX lists the numbers of windows for each axis, a sequence having one.

/// The axes of a ConvolutionShape or a PoolingShape.
template <class WindowedShape>
std::vector<Window> onnx_axes(const WindowedShape& shape, const WindowArguments& arguments) {
  if (arguments.over_time) return {shape.horizontal};
  return {shape.vertical, shape.horizontal};
}
std::vector<Index> onnx_numbers(const std::vector<Window>& axes, Index Window::*number);
/// That before on all axes, then that behind.
std::vector<Index> onnx_padding(const std::vector<Window>& axes);

}  // namespace lockstep
