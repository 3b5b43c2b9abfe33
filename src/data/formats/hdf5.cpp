// Arrays of HDF5 files, one with the features and one with the labels, of one file or of two.
#include <fmt/format.h>

#include "array_file.h"
#include "data/hdf5_dataset.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

ArrayFile open_dataset(const std::string& path, const std::string& key) {
  const ArrayPath source = split_array_path(path);
  if (source.array.empty()) {
    throw DataError(
        fmt::format("{} names the file '{}', which may hold several data sets ({}): say which one, "
                    "as in '{}:x_train'",
                    key, path, Hdf5Dataset::list(path), path));
  }
  return open_array_file(path, [&](ByteStream&, ArrayFile& file) {
    const Hdf5Dataset dataset(source);
    file.sizes = dataset.sizes();
    file.element = &dataset.element();
    file.records.sources = dataset.sources();
  });
}

}  // namespace

FormatEntry hdf5_format() {
  return array_format(
      "hdf5",
      "arrays of HDF5 files, one with features (bytes are scaled to 0..1), one with labels, named as in "
      "\"data.h5:x_train\" or \"data.h5:/group/x_train\"; needs a build with the HDF5 library",
      {".h5", ".hdf5"}, "data set", open_dataset);
}

}  // namespace lockstep
