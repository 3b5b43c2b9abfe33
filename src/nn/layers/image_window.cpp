#include "image_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "arguments.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// In double, where no size that a user can write overflows.
double extent(const WindowArguments& arguments) {
  return static_cast<double>(arguments.size - 1) * static_cast<double>(arguments.dilation) + 1;
}

[[noreturn]] void refuse(const WindowArguments& arguments, const std::string& reason) {
  throw ConfigError(fmt::format("a window of {} pixels{} {}", arguments.size,
                                arguments.dilation > 1 ? fmt::format(", {} apart,", arguments.dilation) : "",
                                reason));
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
  if (arguments.padding == "same") {
    if (extent(arguments) > static_cast<double>(kMaxScalars)) refuse(arguments, "is too large");
    return same_window(window, length);
  }
  const Index padding =
      arguments.padding == "valid" ? 0 : whole_number("padding", arguments.padding, 0, "valid or same");
  if (static_cast<double>(padding) >= extent(arguments)) {
    refuse(arguments, fmt::format("must be longer than its padding, found padding={}", padding));
  }
  if (extent(arguments) > static_cast<double>(length) + 2 * static_cast<double>(padding)) {
    refuse(arguments, fmt::format("does not fit into {} pixels with a padding of {}; make it smaller or give "
                                  "padding=same",
                                  length, padding));
  }
  window.pad_before = window.pad_after = padding;
  return window;
}

}  // namespace

ImageWindows place_windows(const WindowArguments& arguments, const Shape& in) {
  const std::optional<ImageShape> image = as_image(in);
  if (!image) {
    throw ConfigError(
        "expected an image, height x width or height x width x channels; put it before flatten");
  }
  return {*image, place_window(arguments, image->height), place_window(arguments, image->width)};
}

std::vector<Index> onnx_padding(const Window& vertical, const Window& horizontal) {
  return {vertical.pad_before, horizontal.pad_before, vertical.pad_after, horizontal.pad_after};
}

}  // namespace lockstep
