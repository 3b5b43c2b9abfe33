// Pictures inside a page.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/math/shape.h"

namespace lockstep {

/// "data:image/png;base64,...": the image, made smaller where it has more than 48 pixels on a side. Its
/// numbers are taken from 0 (black) to 1 or, where some lie beyond, from the least to the greatest. "" for
/// what does not look like an image: fewer than 4 pixels on a side.
std::string picture_uri(std::span<const Scalar> pixels, const ImageShape& shape);

/// Whether a text is such a picture, and nothing else.
bool is_picture_uri(std::string_view text);

}  // namespace lockstep
