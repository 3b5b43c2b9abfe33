#include "image_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

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

WindowArguments take_pooling(TermArguments& arguments) {
  const Index size = arguments.take_index("size", 1);
  return {.size = size,
          .stride = arguments.take_index("stride", 1, size),
          .padding = arguments.take_word("padding", "valid")};
}

PoolingShape pooling_shape(const ImageWindows& windows) {
  return {.in_height = windows.image.height,
          .in_width = windows.image.width,
          .channels = windows.image.channels,
          .vertical = windows.vertical,
          .horizontal = windows.horizontal};
}

Shape pooled(const Shape& in, const PoolingShape& pooling) {
  Shape out = in;
  out.dims[0] = pooling.out_height();
  out.dims[1] = pooling.out_width();
  return out;
}

void append_axes(Attributes& attributes, const std::string& name, Index vertical, Index horizontal) {
  attributes.emplace_back(name + "_y", static_cast<double>(vertical));
  attributes.emplace_back(name + "_x", static_cast<double>(horizontal));
}

void append_padding(Attributes& attributes, const Window& vertical, const Window& horizontal) {
  attributes.emplace_back("pad_top", static_cast<double>(vertical.pad_before));
  attributes.emplace_back("pad_left", static_cast<double>(horizontal.pad_before));
  attributes.emplace_back("pad_bottom", static_cast<double>(vertical.pad_after));
  attributes.emplace_back("pad_right", static_cast<double>(horizontal.pad_after));
}

Attributes pooling_attributes(const PoolingShape& pooling) {
  Attributes attributes;
  append_axes(attributes, "size", pooling.vertical.size, pooling.horizontal.size);
  append_axes(attributes, "stride", pooling.vertical.stride, pooling.horizontal.stride);
  append_padding(attributes, pooling.vertical, pooling.horizontal);
  return attributes;
}

std::vector<Index> both_axes(const OnnxLayer& layer, const std::string& key) {
  return {layer.whole(key + "_y"), layer.whole(key + "_x")};
}

std::vector<Index> onnx_padding(const OnnxLayer& layer) {
  return {layer.whole("pad_top"), layer.whole("pad_left"), layer.whole("pad_bottom"),
          layer.whole("pad_right")};
}

std::vector<OnnxAttribute> onnx_pooling(const OnnxLayer& layer) {
  return {{"kernel_shape", both_axes(layer, "size")},
          {"strides", both_axes(layer, "stride")},
          {"pads", onnx_padding(layer)}};
}

Index whole_number(std::string_view key, std::string_view text, Index least, std::string_view words) {
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least) return value;
  throw ConfigError(fmt::format("'{}' must be {}a whole number of at least {}, found {}", key,
                                words.empty() ? "" : fmt::format("{} or ", words), least, in_quotes(text)));
}

}  // namespace lockstep
