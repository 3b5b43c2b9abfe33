#include "image_window.h"

#include <algorithm>

#include "layer_parts.h"

namespace lockstep {
namespace {

// In double, where no size that a user can write overflows.
double extent(const WindowArguments& arguments) {
  return static_cast<double>(arguments.size - 1) * static_cast<double>(arguments.dilation) + 1;
}

const char* unit(const WindowArguments& arguments) {
  return arguments.over_time ? "positions" : "pixels";
}

[[noreturn]] void refuse(const WindowArguments& arguments, const std::string& reason) {
  throw ConfigError("a window of {} {}{} {}", arguments.size, unit(arguments),
                    arguments.dilation > 1 ? fmt::format(", {} apart,", arguments.dilation) : "", reason);
}

Window same_window(Window window, Index length) {
  const Index positions = (length - 1) / window.stride + 1;
  const Index reach = (positions - 1) * window.stride + (window.size - 1) * window.dilation + 1;
  const Index total = std::max<Index>(0, reach - length);
  window.pad_before = total / 2;
  window.pad_after = total - total / 2;
  return window;
}

// A position that lies wholly in the padding would see nothing: padding stays below the window.
Window place_window(const WindowArguments& arguments, Index length) {
  Window window{.size = arguments.size, .stride = arguments.stride, .dilation = arguments.dilation};
  const bool causal = arguments.over_time && arguments.padding == "causal";
  if (causal || arguments.padding == "same") {
    if (extent(arguments) > static_cast<double>(kMaxScalars)) refuse(arguments, "is too large");
    if (!arguments.over_time) return same_window(window, length);
    const Index reach = (window.size - 1) * window.dilation;
    window.pad_before = causal ? reach : reach / 2;
    window.pad_after = reach - window.pad_before;
    return window;
  }
  const char* words = arguments.over_time ? "valid, same, causal" : "valid or same";
  const Index padding =
      arguments.padding == "valid" ? 0 : whole_number("padding", arguments.padding, 0, words);
  if (static_cast<double>(padding) >= extent(arguments)) {
    refuse(arguments, fmt::format("must be longer than its padding, found padding={}", padding));
  }
  if (extent(arguments) > static_cast<double>(length) + 2 * static_cast<double>(padding)) {
    refuse(arguments, fmt::format("does not fit into {} {} with a padding of {}; make it smaller or give "
                                  "padding=same",
                                  length, unit(arguments), padding));
  }
  window.pad_before = window.pad_after = padding;
  return window;
}

}  // namespace

ImageWindows place_windows(const WindowArguments& arguments, const Shape& in) {
  if (arguments.over_time) {
    const SequenceShape sequence = expect_sequence(in);
    return {.image = {.height = 1, .width = sequence.positions, .channels = sequence.channels},
            .vertical = {},
            .horizontal = place_window(arguments, sequence.positions)};
  }
  error_if(
      in.sequence,
      "expected an image, found a sequence, which conv1d, maxpool1d, avgpool1d and mean_over_time are for");
  const std::optional<ImageShape> image = as_image(in);
  if (!image) {
    throw ConfigError(
        "expected an image, height x width or height x width x channels; put it before flatten");
  }
  return {*image, place_window(arguments, image->height), place_window(arguments, image->width)};
}

std::vector<Index> onnx_numbers(const std::vector<Window>& axes, Index Window::*number) {
  std::vector<Index> numbers;
  for (const Window& axis : axes) numbers.push_back(axis.*number);
  return numbers;
}

std::vector<Index> onnx_padding(const std::vector<Window>& axes) {
  std::vector<Index> padding = onnx_numbers(axes, &Window::pad_before);
  const std::vector<Index> after = onnx_numbers(axes, &Window::pad_after);
  padding.insert(padding.end(), after.begin(), after.end());
  return padding;
}

}  // namespace lockstep
