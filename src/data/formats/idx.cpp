// Data sets of two IDX files, one with the features and one with the labels: MNIST, Fashion-MNIST, EMNIST.
#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "idx_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/dense_records.h"
#include "lockstep/data/records.h"
#include "lockstep/data/split_files.h"

namespace lockstep {
namespace {

Scalar* grow(std::vector<Scalar>& values, Index count) {
  values.resize(values.size() + static_cast<std::size_t>(count));
  return values.data() + values.size() - count;
}

// The wanted records of `file` as scalars, checked one by one with check(record, scalars).
template <class Check>
std::vector<Scalar> read_scalars(const IdxFile& file, const IdSet& ids, const Check& check) {
  std::vector<Scalar> values;
  values.reserve(static_cast<std::size_t>(ids.size() * file.elements_per_record()));
  file.for_each_record([&](Index record, const std::byte* bytes) {
    if (!ids.contains(record)) return;
    const std::span<Scalar> scalars(grow(values, file.elements_per_record()),
                                    static_cast<std::size_t>(file.elements_per_record()));
    file.element().decode(bytes, scalars);
    check(record, scalars);
  });
  return values;
}

std::vector<std::uint8_t> read_bytes(const IdxFile& file, const IdSet& ids) {
  std::vector<std::uint8_t> values;
  values.reserve(static_cast<std::size_t>(ids.size() * file.elements_per_record()));
  file.for_each_record([&](Index record, const std::byte* bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes);
    if (ids.contains(record)) values.insert(values.end(), first, first + file.elements_per_record());
  });
  return values;
}

DenseRecords::Features read_features(const IdxFile& file, const IdSet& ids) {
  if (file.element().code == kIdxU8) return read_bytes(file, ids);
  return read_scalars(file, ids, [&](Index record, std::span<const Scalar> scalars) {
    for (const Scalar value : scalars) {
      if (std::isfinite(value)) continue;
      throw DataError(fmt::format("'{}', record {}: found {}, expected a finite number", file.path(),
                                  with_commas(record), value));
    }
  });
}

bool obeys(const TargetRule& rule, Scalar value) {
  if (rule.classes > 0) {
    return value >= 0 && value < static_cast<Scalar>(rule.classes) && value == std::floor(value);
  }
  return rule.unit_interval ? value >= 0 && value <= 1 : std::isfinite(value);
}

std::string describe(const TargetRule& rule) {
  if (rule.classes > 0)
    return fmt::format("a class below {}, the number of outputs of the model", rule.classes);
  return rule.unit_interval ? "a number from 0 to 1, for a loss on yes or no" : "a finite number";
}

std::vector<Scalar> read_labels(const IdxFile& file, const IdSet& ids, const TargetRule& rule) {
  return read_scalars(file, ids, [&](Index record, std::span<const Scalar> scalars) {
    for (const Scalar value : scalars) {
      if (obeys(rule, value)) continue;
      throw DataError(fmt::format("'{}', record {}: found label {}, expected {}", file.path(),
                                  with_commas(record), value, describe(rule)));
    }
  });
}

class IdxSource : public RecordSource {
 public:
  explicit IdxSource(const SplitFiles& files) : features_(files.records, files.records_key) {
    if (!files.labels.empty()) labels_.emplace(files.labels, files.labels_key);
    check(files);
    info_.rows = features_.records();
    info_.features.dims.assign(features_.sizes().begin() + 1, features_.sizes().end());
    info_.target_columns = labels_ ? labels_->elements_per_record() : 0;
    const Index feature_bytes = features_.element().code == kIdxU8 ? 1 : Index{sizeof(Scalar)};
    info_.record_bytes = info_.features.size() * feature_bytes + info_.target_columns * Index{sizeof(Scalar)};
    info_.name = features_.path();
    info_.source_bytes = features_.file_bytes() + (labels_ ? labels_->file_bytes() : 0);
  }

  const DatasetInfo& info() const override { return info_; }

  std::unique_ptr<Records> load(const RecordFilter& wanted, const TargetRule& rule) const override {
    IdSet ids(info_.rows, wanted.wants);
    assert(ids.size() == wanted.count);
    std::vector<Scalar> labels;
    if (labels_) labels = read_labels(*labels_, ids, rule);
    DenseRecords::Features features = read_features(features_, ids);
    return std::make_unique<DenseRecords>(std::move(ids), info_.features.size(), info_.target_columns,
                                          std::move(features), std::move(labels));
  }

 private:
  void check(const SplitFiles& files) const {
    if (features_.sizes().size() < 2) {
      throw DataError(
          fmt::format("'{}' has 1 dimension, expected at least 2 (records x features): is {} the file of "
                      "labels?{}",
                      features_.path(), files.records_key,
                      labels_ ? fmt::format(" Those belong to {}", files.labels_key) : ""));
    }
    if (!labels_) return;
    if (labels_->sizes().size() > 2) {
      throw DataError(
          fmt::format("'{}' has {} dimensions, expected 1 or 2 (records, or records x columns): is {} "
                      "the file of features? Those belong to {}",
                      labels_->path(), labels_->sizes().size(), files.labels_key, files.records_key));
    }
    if (features_.records() != labels_->records()) {
      throw DataError(
          fmt::format("'{}' has {} records, but '{}' has {} labels: expected as many labels as records; "
                      "do {} and {} belong to the same data set?",
                      features_.path(), with_commas(features_.records()), labels_->path(),
                      with_commas(labels_->records()), files.records_key, files.labels_key));
    }
  }

  IdxFile features_;
  std::optional<IdxFile> labels_;
  DatasetInfo info_;
};

std::unique_ptr<RecordSource> open(const DataOptions& options, Split split, std::uint64_t) {
  const SplitFiles files = split_files(options, split);
  if (files.records.empty()) return nullptr;
  return std::make_unique<IdxSource>(files);
}

std::unique_ptr<RecordSource> open_input(const DataOptions&, const std::string& path) {
  return std::make_unique<IdxSource>(
      SplitFiles{.records = path, .labels = "", .records_key = "--input", .labels_key = ""});
}

}  // namespace

FormatEntry idx_format() {
  return {
      .name = "idx",
      .help =
          "IDX files, raw or gzip, as MNIST comes: one with features (bytes are scaled to 0..1), one with "
          "labels",
      .extensions = {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"},
      .options = {"data.train", "data.train_labels", "data.validation", "data.validation_labels", "data.test",
                  "data.test_labels"},
      .open = open,
      .open_input = open_input};
}

}  // namespace lockstep
