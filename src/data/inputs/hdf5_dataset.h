// An array of numbers in an HDF5 file, read by rows of its first dimension: a rank reads its own share only.
// hdf5/dataset.cpp where the build found the library, else hdf5/missing.cpp, which says how to get it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "element.h"
#include "lockstep/base/types.h"
#include "lockstep/data/inputs/byte_stream.h"

namespace lockstep {

class Hdf5Dataset {
 public:
  /// Errors: DataError if there is no such data set, if it holds no numbers or is damaged; ConfigError if the
  /// build has no HDF5.
  explicit Hdf5Dataset(const ArrayPath& path);
  ~Hdf5Dataset();

  /// Sizes of all dimensions, at least one.
  const std::vector<Index>& sizes() const { return sizes_; }
  const Element& element() const { return *element_; }
  Index row_bytes() const { return row_bytes_; }
  Index rows() const { return sizes_.front(); }

  /// Rows as element() has them, one after the other. False if that fails, see reason().
  bool read(Range rows, std::byte* to);
  const std::string& reason() const { return reason_; }

  /// The data sets of a file. Errors: DataError; ConfigError as above.
  static std::vector<std::string> names(const std::string& file);

 private:
  struct Library;  // objects of the library

  std::unique_ptr<Library> library_;
  std::vector<Index> sizes_;
  const Element* element_ = nullptr;
  Index row_bytes_ = 0;
  std::string reason_;
};

}  // namespace lockstep
