// Data sets of numpy's arrays, one with the features and one with the labels: two .npy files, or two arrays
// of an .npz archive, or of two.
#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "numpy_file.h"

namespace lockstep {
namespace {

ArrayFile open_array(const std::string& path, const std::string& key) {
  if (path.ends_with(".npz")) {
    throw DataError(
        fmt::format("{} names the archive '{}', which may hold several arrays: say which one, "
                    "as in '{}:x_train'",
                    key, path, path));
  }
  return open_numpy_file(path);
}

}  // namespace

FormatEntry numpy_format() {
  return array_format(
      "numpy",
      "arrays of numpy, one with features (bytes are scaled to 0..1), one with labels: .npy files, or "
      "arrays of an .npz archive, named as in \"data.npz:x_train\"; of records with named fields, those that "
      "\"people.npy:age+hours\" names, or all but the labels",
      {".npy", ".npz", ".npy.gz"}, "array", open_array);
}

}  // namespace lockstep
