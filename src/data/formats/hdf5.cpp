// Arrays of HDF5 files, one with the features and one with the labels, of one file or of two.
#include <fmt/format.h>

#include "../hdf5_dataset.h"
#include "array_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/open_files.h"

namespace lockstep {
namespace {

const std::vector<std::string> kExtensions = {".h5", ".hdf5"};

ArrayFile open_dataset(const std::string& path, const std::string& key) {
  const ArrayPath place = split_array_path(path);
  if (place.array.empty()) {
    throw DataError(
        fmt::format("{} names the file '{}', which may hold several data sets ({}): say which one, "
                    "as in '{}:x_train'",
                    key, path, Hdf5Dataset::list(path), path));
  }
  return open_array_file(path, [&](ByteStream&, ArrayFile& file) {
    const Hdf5Dataset dataset(place);
    file.sizes = dataset.sizes();
    file.element = &dataset.element();
  });
}

std::unique_ptr<RecordSource> open_pair(const FilePair& files) {
  return open_array_pair(files, "data set", open_dataset);
}

}  // namespace

FormatEntry hdf5_format() {
  return {
      .name = "hdf5",
      .help =
          "arrays of HDF5 files, one with features (bytes are scaled to 0..1), one with labels, named as in "
          "\"data.h5:x_train\" or \"data.h5:/group/x_train\"; needs a build with the HDF5 library",
      .extensions = kExtensions,
      .options = {"data.train", "data.train_labels", "data.validation_share", "data.validation",
                  "data.validation_labels", "data.test", "data.test_labels"},
      .open =
          [](const OpenRequest& request) {
            return open_files(request, Labels::kInFilesOfTheirOwn, kExtensions, open_pair);
          },
      .open_input =
          [](const InputRequest& request) { return open_input_files(request, kExtensions, open_pair); }};
}

}  // namespace lockstep
