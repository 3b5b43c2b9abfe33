// Data sets of numpy's arrays, one with the features and one with the labels: two .npy files, or two arrays
// of an .npz archive, or of two.
#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "lockstep/data/open_files.h"
#include "numpy_file.h"

namespace lockstep {
namespace {

const std::vector<std::string> kExtensions = {".npy", ".npz", ".npy.gz"};

ArrayFile open_array(const std::string& path, const std::string& key) {
  if (path.ends_with(".npz")) {
    throw DataError(
        fmt::format("{} names the archive '{}', which may hold several arrays: say which one, "
                    "as in '{}:x_train'",
                    key, path, path));
  }
  return open_numpy_file(path);
}

std::unique_ptr<RecordSource> open_pair(const FilePair& files) {
  return open_array_pair(files, "array", open_array);
}

}  // namespace

FormatEntry numpy_format() {
  return {
      .name = "numpy",
      .help =
          "arrays of numpy, one with features (bytes are scaled to 0..1), one with labels: .npy files, or "
          "arrays of an .npz archive, named as in \"data.npz:x_train\"",
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
