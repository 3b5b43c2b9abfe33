// The header of a file in the IDX format of the MNIST data sets (Y. LeCun, "The MNIST database of handwritten
// digits").
//
//   file   = 0x00 0x00 type count size^count element*
//   type   = 0x08 u8 | 0x09 i8 | 0x0B i16 | 0x0C i32 | 0x0D f32 | 0x0E f64         one byte
//   count  = number of dimensions                                                 one byte
//   size   = length of one dimension, the first being the number of records       32 bits
//
// Everything is big endian, the elements are in row-major order. The file may be packed with gzip.
#pragma once

#include <string>

#include "array_file.h"

namespace lockstep {

/// Reads and checks the header. Errors: DataError.
ArrayFile open_idx_file(const std::string& path);

}  // namespace lockstep
