// The header of numpy's array files (NEP 1, "A simple file format for NumPy arrays", versions 1 to 3):
//
//   file   = 0x93 "NUMPY" major minor length header number*
//   length = bytes of the header, little endian: 16 bits in version 1, else 32
//   header = a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
//
// In an .npz archive each array is such a file.
#pragma once

#include <string>

#include "array_file.h"

namespace lockstep {

/// Reads and checks the header of a file or of an array in an archive ("data.npz:x"). Errors: DataError.
ArrayFile open_numpy_file(const std::string& path);

}  // namespace lockstep
