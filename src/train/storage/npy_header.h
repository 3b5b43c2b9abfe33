// The start of numpy's array files (NEP 1, "A simple file format for NumPy arrays", version 1.0); the numbers
// follow it.
#pragma once

#include <string>

#include "lockstep/math/shape.h"

namespace lockstep {

/// The header of an array of floats or doubles (little endian, C order). Its length is a multiple of 64
/// bytes.
std::string npy_header(const Shape& shape, bool doubles = false);

}  // namespace lockstep
