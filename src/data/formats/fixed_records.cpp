#include "fixed_records.h"

#include <fmt/format.h>

#include "data/dense_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

DenseField dense_field(const RecordFile& file, const FixedField& field) {
  return {.file = file,
          .offset = field.offset,
          .count = field.count,
          .element = field.element,
          .planes = field.planes};
}

}  // namespace

std::unique_ptr<RecordSource> open_fixed_records(const std::string& path, const FixedRecords& records,
                                                 bool with_targets) {
  const ByteStream stream(path, Packing::kNone);
  const Index bytes = stream.file_bytes();
  if (bytes == 0 || bytes % records.record_bytes != 0) {
    throw DataError(
        fmt::format("'{}' has {} bytes, expected a multiple of {}, the bytes of a record: {} bytes are too "
                    "many after {} records; is it truncated, compressed, or of another format?",
                    path, with_commas(bytes), with_commas(records.record_bytes),
                    with_commas(bytes % records.record_bytes), with_commas(bytes / records.record_bytes)));
  }
  const RecordFile file{.path = path,
                        .records = bytes / records.record_bytes,
                        .record_bytes = records.record_bytes,
                        .file_bytes = bytes};
  DenseFields fields{
      .shape = records.shape, .features = dense_field(file, records.features), .targets = std::nullopt};
  if (with_targets && records.targets) fields.targets = dense_field(file, *records.targets);
  return std::make_unique<DenseSource>(std::move(fields));
}

}  // namespace lockstep
