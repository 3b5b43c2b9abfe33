// Data sets of numpy's arrays, one with the features and one with the labels: two .npy files, or two arrays
// of an .npz archive, or of two.
#include <fmt/format.h>

#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/dense_source.h"
#include "lockstep/data/open_files.h"
#include "numpy_file.h"

namespace lockstep {
namespace {

const std::vector<std::string> kExtensions = {".npy", ".npz", ".npy.gz"};

NumpyFile open_array(const std::string& path, const std::string& key) {
  if (path.ends_with(".npz")) {
    throw DataError(
        fmt::format("{} names the archive '{}', which may hold several arrays: say which one, "
                    "as in '{}:x_train'",
                    key, path, path));
  }
  return open_numpy_file(path);
}

DenseField field_of(const NumpyFile& file) {
  return {.file = file.records, .count = file.elements_per_record, .element = file.element};
}

void check_labels(const NumpyFile& labels, const NumpyFile& features, const FilePair& files) {
  if (labels.sizes.size() > 2) {
    throw DataError(
        fmt::format("'{}' has {} dimensions, expected 1 or 2 (records, or records x columns): is {} the "
                    "array of features? Those belong to {}",
                    files.labels, labels.sizes.size(), files.labels_key, files.records_key));
  }
  if (features.records.records != labels.records.records) {
    throw DataError(fmt::format(
        "'{}' has {} records, but '{}' has {} labels: expected as many labels as records", files.records,
        with_commas(features.records.records), files.labels, with_commas(labels.records.records)));
  }
}

std::unique_ptr<RecordSource> open_pair(const FilePair& files) {
  const NumpyFile features = open_array(files.records, files.records_key);
  if (features.sizes.size() < 2) {
    throw DataError(
        fmt::format("'{}' has 1 dimension, expected at least 2 (records x features): is {} the array of "
                    "labels?",
                    files.records, files.records_key));
  }
  DenseFields fields;
  fields.features = field_of(features);
  fields.shape.dims.assign(features.sizes.begin() + 1, features.sizes.end());
  if (!files.labels.empty()) {
    const NumpyFile labels = open_array(files.labels, files.labels_key);
    check_labels(labels, features, files);
    fields.targets = field_of(labels);
  }
  return std::make_unique<DenseSource>(std::move(fields));
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
