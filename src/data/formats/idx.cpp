// Data sets of two IDX files, one with the features and one with the labels: MNIST, Fashion-MNIST, EMNIST.
#include "idx_file.h"

namespace lockstep {

FormatEntry idx_format() {
  return array_format(
      "idx",
      "IDX files, raw or gzip, as MNIST comes: one with features (bytes are scaled to 0..1), one with "
      "labels",
      {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}, "file",
      [](const std::string& path, const std::string&) { return open_idx_file(path); });
}

}  // namespace lockstep
