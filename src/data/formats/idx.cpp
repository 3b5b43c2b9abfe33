// Data sets of two IDX files, one with the features and one with the labels: MNIST, Fashion-MNIST, EMNIST.
#include "idx_file.h"
#include "lockstep/data/open_files.h"

namespace lockstep {
namespace {

const std::vector<std::string> kExtensions = {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"};

std::unique_ptr<RecordSource> open_pair(const FilePair& files) {
  return open_array_pair(files, "file",
                         [](const std::string& path, const std::string&) { return open_idx_file(path); });
}

}  // namespace

FormatEntry idx_format() {
  return {
      .name = "idx",
      .help =
          "IDX files, raw or gzip, as MNIST comes: one with features (bytes are scaled to 0..1), one with "
          "labels",
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
