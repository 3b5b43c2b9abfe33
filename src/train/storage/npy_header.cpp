#include "npy_header.h"

#include <fmt/format.h>

#include <bit>

#include "lockstep/base/types.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "the header says so");

// A Python tuple: "(3,)", "(3, 4)".
std::string tuple(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.dims.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", shape.dims[i]);
    if (i + 1 < shape.dims.size() || i == 0) text += ',';
  }
  return text + ")";
}

}  // namespace

std::string npy_header(const Shape& shape, bool doubles) {
  const std::string magic("\x93NUMPY\x01\x00", 8);
  constexpr Index kLengthBytes = 2;
  std::string text = fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': {}, }}",
                                 doubles ? 8 : 4, tuple(shape));
  const Index before = static_cast<Index>(magic.size() + text.size()) + kLengthBytes;
  text.append(static_cast<std::size_t>(round_up(before + 1, 64) - before - 1), ' ');
  text += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  return magic + std::string{static_cast<char>(length & 0xff), static_cast<char>(length >> 8)} + text;
}

}  // namespace lockstep
