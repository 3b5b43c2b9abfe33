// The start of numpy's array files (NEP 1, "A simple file format for NumPy arrays", version 1.0); the numbers
// follow it.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>

#include "lockstep/math/shape.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "the header says so");

/// The header of an array of floats or doubles (little endian, C order). Its length is a multiple of 64
/// bytes.
inline std::string npy_header(const Shape& shape, bool doubles = false) {
  const std::string magic("\x93NUMPY\x01\x00", 8);
  constexpr Index kLengthBytes = 2;
  std::string tuple;  // of Python: "3,", "3, 4"
  for (const Index dim : shape.dims) tuple += fmt::format("{}{}", tuple.empty() ? "" : ", ", dim);
  if (shape.dims.size() == 1) tuple += ',';
  std::string text =
      fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': ({}), }}", doubles ? 8 : 4, tuple);
  const Index before = static_cast<Index>(magic.size() + text.size()) + kLengthBytes;
  text.append(static_cast<std::size_t>(round_up(before + 1, 64) - before - 1), ' ');
  text += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  return magic + std::string{static_cast<char>(length & 0xff), static_cast<char>(length >> 8)} + text;
}

}  // namespace lockstep
