// The fields of numpy's structured arrays, as the header of an array file describes them:
//
//   fields = "[" field { "," field } "]"
//   field  = "(" name "," ( type | fields ) [ "," shape ] ")"       shape = "(" size { "," size } ")"
//   name   = text | "(" title "," text ")"                          "" for bytes between fields
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "array_file.h"

namespace lockstep {

/// A type of numpy, "<f4".
struct NumpyType {
  Index bytes = 0;
  const Element* element = nullptr;  ///< null for what is no number that is read
};
/// Errors: DataError if that is no type.
NumpyType parse_numpy_type(std::string_view type);

struct NumpyFields {
  std::vector<ArrayField> fields;
  Index record_bytes = 0;
};
/// `text`: begins with the fields. Fields of fields are called "outer.inner". Errors: DataError saying what
/// is wrong with them.
NumpyFields parse_numpy_fields(std::string_view text);

// The header of numpy's array files (NEP 1, "A simple file format for NumPy arrays", versions 1 to 3):
//
//   file   = 0x93 "NUMPY" major minor length header number*
//   length = bytes of the header, little endian: 16 bits in version 1, else 32
//   header = a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
//
// In an .npz archive each array is such a file.

/// Reads and checks the header of a file or of an array in an archive ("data.npz:x"). Errors: DataError.
ArrayFile open_numpy_file(const std::string& path);

}  // namespace lockstep
