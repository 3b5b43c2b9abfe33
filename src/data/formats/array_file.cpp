#include "array_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

void compute_sizes(ArrayFile& file) {
  bool overflows = false;
  file.elements_per_record = 1;
  for (std::size_t i = 1; i < file.sizes.size(); ++i) {
    overflows |= __builtin_mul_overflow(file.elements_per_record, file.sizes[i], &file.elements_per_record);
  }
  RecordFile& records = file.records;
  records.records = file.sizes.front();
  Index data_bytes = 0;
  if (file.fields.empty()) {
    overflows |= __builtin_mul_overflow(file.elements_per_record, file.element->bytes, &records.record_bytes);
  }
  overflows |= __builtin_mul_overflow(records.record_bytes, records.records, &data_bytes);
  const std::string shape = excerpt(fmt::format("{}", fmt::join(file.sizes, "x")));
  error_if<DataError>(overflows, "'{}' is damaged: its header states {} elements, more than any file holds",
                      records.path, shape);
  error_if<DataError>(data_bytes == 0, "'{}' holds no data: its header states {} elements", records.path,
                      shape);
}

// The position in a record, whose last dimension varies fastest, of each element in the order of a file whose
// first dimension does.
std::vector<Index> fortran_positions(const ArrayFile& file) {
  std::vector<Index> positions;
  for (Index element = 0; element < file.elements_per_record; ++element) {
    Index rest = element;
    Index position = 0;
    Index stride = file.elements_per_record;
    for (std::size_t i = 1; i < file.sizes.size(); ++i) {
      stride /= file.sizes[i];
      position += rest % file.sizes[i] * stride;
      rest /= file.sizes[i];
    }
    positions.push_back(position);
  }
  return positions;
}

void check_features(const ArrayFile& features, const FileGroup& files, const std::string& noun) {
  error_if<DataError>(files.numbers && features.sizes.size() != 1,
                      "'{}' has {} dimensions, expected 1: the ids of one token behind the other",
                      files.records.path, features.sizes.size());
  if (files.numbers || features.sizes.size() >= 2) return;
  throw DataError(
      "'{}' has 1 dimension, expected at least 2 (records x features): is {} the {} of labels?{} "
      "If it is ids of tokens, one behind the other, give data.tokens = \"ids\"",
      files.records.path, files.records.key, noun,
      files.labels.path.empty() ? "" : fmt::format(" Those belong to {}", files.labels.key));
}

// `noun`: what the other array has for each record.
void expect_as_many(const ArrayFile& features, const FileGroup& files, const ArrayFile& others,
                    const std::string& key, const std::string& noun) {
  if (features.records.records == others.records.records) return;
  throw DataError(
      "'{0}' has {1} records, but '{2}' has {3} {4}: expected as many {4} as records; do {5} and {6} belong "
      "to the same data set?",
      files.records.path, with_commas(features.records.records), others.records.path,
      with_commas(others.records.records), noun, files.records.key, key);
}

void check_labels(const ArrayFile& labels, const ArrayFile& features, const FileGroup& files,
                  const std::string& noun) {
  const std::size_t most = files.record == RecordShape::kSequence ? 3 : 2;
  error_if<DataError>(
      labels.sizes.size() > most,
      "'{}' has {} dimensions, expected 1 or 2 (records, or records x columns), or 3 with data.record "
      "sequence (records x positions x columns): is {} the {} of features? Those belong to {}",
      files.labels.path, labels.sizes.size(), files.labels.key, noun, files.records.key);
  expect_as_many(features, files, labels, files.labels.key, "labels");
}

// Weights or lengths: one number a record.
void check_numbers(const ArrayFile& numbers, const ArrayFile& features, const FileGroup& files,
                   const std::string& key, const char* noun) {
  error_if<DataError>(
      numbers.elements_per_record != 1,
      "'{}' has {} numbers for each record, expected one, its {}: is it the array that {} should name?",
      numbers.records.path, numbers.elements_per_record, noun, key);
  expect_as_many(features, files, numbers, key, fmt::format("{}s", noun));
}

// The shape of a record that the array has so many dimensions of.
Shape record_shape(const ArrayFile& features, const FileGroup& files) {
  Shape shape{.dims = {features.sizes.begin() + 1, features.sizes.end()}};
  const std::size_t dims = shape.dims.size();
  switch (files.record) {
    case RecordShape::kAuto:
      return shape;
    case RecordShape::kRow:
      return {{shape.size()}};
    case RecordShape::kImage:
      if (dims == 2 || dims == 3) return shape;
      break;
    case RecordShape::kSequence:
      if (dims == 0 || dims > 2) break;
      return SequenceShape{.positions = shape.dims[0], .channels = dims == 2 ? shape.dims[1] : 1}.shape();
  }
  throw DataError("'{}' has records of {}, expected {}: change data.record", files.records.path,
                  dims == 0 ? "one number" : to_string(shape),
                  files.record == RecordShape::kImage ? "images, height x width or height x width x channels"
                                                      : "sequences, positions or positions x channels");
}

DenseField array_field(const ArrayFile& file) {
  DenseField field{.file = file.records, .count = file.elements_per_record, .element = file.element};
  if (file.fields.size() == 1) {
    field.offset = file.fields.front().piece.offset;
    field.element = file.fields.front().piece.element;
  } else {
    for (const ArrayField& each : file.fields) field.pieces.push_back(each.piece);
  }
  return field;
}

// The features of an array whose fields the config does not name are all that are not labels or weights.
void leave_out(ArrayFile& features, const std::string& labels, const FileGroup& files) {
  const ArrayPath from = split_array_path(files.records.path);
  const ArrayPath other = split_array_path(labels);
  if (features.fields.empty() || features.names_fields) return;
  if (from.file != other.file || from.array != other.array) return;
  std::vector<ArrayField> left;
  std::ranges::copy_if(features.fields, std::back_inserter(left), [&](const ArrayField& field) {
    const std::vector<std::string> names = other.field_names();
    return std::ranges::find(names, field.name) == names.end();
  });
  if (left.empty()) throw DataError("no field of '{}' is left as a feature", files.records.path);
  use_fields(features, std::move(left));
}

// Errors: DataError if their shapes do not fit.
std::unique_ptr<RecordSource> open_group(const FileGroup& files, const std::string& noun,
                                         const OpenArray& open) {
  ArrayFile features = open(files.records.path, files.records.key);
  for (const std::string& path : {files.labels.path, files.weights.path, files.lengths.path})
    leave_out(features, path, files);
  check_features(features, files, noun);
  DenseFields fields;
  fields.features = array_field(features);
  fields.ignored = files.ignored;
  fields.shape = record_shape(features, files);
  if (!files.labels.path.empty()) {
    const ArrayFile labels = open(files.labels.path, files.labels.key);
    check_labels(labels, features, files, noun);
    fields.targets = array_field(labels);
  }
  if (!files.weights.path.empty()) {
    const ArrayFile weights = open(files.weights.path, files.weights.key);
    check_numbers(weights, features, files, files.weights.key, "weight");
    fields.weights = array_field(weights);
  }
  if (!files.lengths.path.empty()) {
    error_if(!fields.shape.sequence,
             "{} is set, but records are no sequences: set data.record = \"sequence\"", files.lengths.key);
    const ArrayFile lengths = open(files.lengths.path, files.lengths.key);
    check_numbers(lengths, features, files, files.lengths.key, "length");
    fields.lengths = array_field(lengths);
  }
  return std::make_unique<DenseSource>(std::move(fields));
}

}  // namespace

void use_fields(ArrayFile& file, std::vector<ArrayField> fields) {
  file.elements_per_record = 0;
  for (const ArrayField& field : fields) file.elements_per_record += field.piece.count;
  file.sizes.resize(1);
  if (fields.size() == 1 && !fields.front().shape.empty()) {
    file.sizes.insert(file.sizes.end(), fields.front().shape.begin(), fields.front().shape.end());
  } else {
    file.sizes.push_back(file.elements_per_record);
  }
  file.fields = std::move(fields);
}

ArrayFile open_array_file(const std::string& path, const ReadArrayHeader& read_header) {
  ByteStream stream(path);
  ArrayFile file;
  file.records.path = path;
  file.records.file_bytes = stream.file_bytes();
  file.records.compressed = stream.compressed();
  read_header(stream, file);
  compute_sizes(file);
  file.records.check_size(stream);
  if (file.fortran_order) file.records.fortran_order = fortran_positions(file);
  return file;
}

FormatEntry array_format(std::string name, std::string help, const std::vector<std::string>& extensions,
                         const std::string& noun, const OpenArray& open) {
  const OpenGroup group = [noun, open](const FileGroup& files) { return open_group(files, noun, open); };
  return {.name = std::move(name),
          .help = std::move(help),
          .extensions = extensions,
          .options = {"data.train", "data.train_labels", "data.train_weights", "data.train_lengths",
                      "data.validation", "data.validation_labels", "data.validation_weights",
                      "data.validation_lengths", "data.test", "data.test_labels", "data.test_weights",
                      "data.test_lengths", "data.record", "data.window", "data.tokens", "data.draw",
                      "data.token_cache"},
          .open = [extensions, group](const OpenRequest& request) {
            return open_files(request, Labels::kInFilesOfTheirOwn, extensions, group);
          }};
}

}  // namespace lockstep
