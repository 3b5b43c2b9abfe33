// Data sets of two IDX files, one with the features and one with the labels: MNIST, Fashion-MNIST, EMNIST.
#include <fmt/format.h>

#include "idx_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/dense_source.h"
#include "lockstep/data/open_files.h"

namespace lockstep {
namespace {

const std::vector<std::string> kExtensions = {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"};

void check_features(const IdxFile& features, const FilePair& files) {
  if (features.sizes.size() >= 2) return;
  throw DataError(
      fmt::format("'{}' has 1 dimension, expected at least 2 (records x features): is {} the file of "
                  "labels?{}",
                  files.records, files.records_key,
                  files.labels.empty() ? "" : fmt::format(" Those belong to {}", files.labels_key)));
}

void check_labels(const IdxFile& labels, const IdxFile& features, const FilePair& files) {
  if (labels.sizes.size() > 2) {
    throw DataError(
        fmt::format("'{}' has {} dimensions, expected 1 or 2 (records, or records x columns): is {} "
                    "the file of features? Those belong to {}",
                    files.labels, labels.sizes.size(), files.labels_key, files.records_key));
  }
  if (features.records.records != labels.records.records) {
    throw DataError(
        fmt::format("'{}' has {} records, but '{}' has {} labels: expected as many labels as records; "
                    "do {} and {} belong to the same data set?",
                    files.records, with_commas(features.records.records), files.labels,
                    with_commas(labels.records.records), files.records_key, files.labels_key));
  }
}

DenseField field_of(const IdxFile& file) {
  return {.file = file.records, .count = file.elements_per_record, .element = file.element};
}

std::unique_ptr<RecordSource> open_pair(const FilePair& files) {
  const IdxFile features = open_idx_file(files.records);
  DenseFields fields;
  if (!files.labels.empty()) {
    const IdxFile labels = open_idx_file(files.labels);
    check_features(features, files);
    check_labels(labels, features, files);
    fields.targets = field_of(labels);
  }
  check_features(features, files);
  fields.features = field_of(features);
  fields.shape.dims.assign(features.sizes.begin() + 1, features.sizes.end());
  return std::make_unique<DenseSource>(std::move(fields));
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
