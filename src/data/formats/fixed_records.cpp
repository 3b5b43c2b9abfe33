// Files without a header: records of one size, one after the other.
//
// raw: laid out as the config declares, "label:u8 features:u8[32,32,3]". Numbers are little endian.
//
//   layout = field (" " field)*
//   field  = ("features" | "label" | "skip") ":" type [ "[" size ("," size)* "]" ]
//   type   = u8 | i8 | u16 | i16 | u32 | i32 | u64 | i64 | f32 | f64 | bool
//
// cifar10, cifar100: the binary versions of CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning multiple layers
// of features from tiny images", 2009).
//
//   record = label image              CIFAR-10, 3073 bytes
//   record = coarse fine image        CIFAR-100, 3074 bytes; the label is the fine one
//   image = 32x32 bytes of red, then of green, then of blue
#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "dense_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "record_file.h"

namespace lockstep {
namespace {

constexpr Index kMaxFixedBytes = Index{1} << 31;

struct FixedRecords {
  Index record_bytes = 0;
  DenseFields fields = {};  // of no file yet
};

// Errors: DataError if there is no such file, or it has no whole number of records.
std::unique_ptr<RecordSource> open_fixed_records(const std::string& path, FixedRecords records) {
  const ByteStream stream(path, Packing::kNone);
  const Index bytes = stream.file_bytes();
  if (bytes == 0 || bytes % records.record_bytes != 0) {
    throw DataError(
        "'{}' has {} bytes, expected a multiple of {}, the bytes of a record: {} bytes are too many after {} "
        "records; is it truncated, compressed, or of another format?",
        path, with_commas(bytes), with_commas(records.record_bytes),
        with_commas(bytes % records.record_bytes), with_commas(bytes / records.record_bytes));
  }
  records.fields.features.file = {.path = path,
                                  .records = bytes / records.record_bytes,
                                  .record_bytes = records.record_bytes,
                                  .file_bytes = bytes};
  if (records.fields.targets) records.fields.targets->file = records.fields.features.file;
  return std::make_unique<DenseSource>(std::move(records.fields));
}

// A format of such files. `records` says what they consist of.
FormatEntry fixed_format(std::string name, std::string help, const std::vector<std::string>& own_options,
                         const std::function<FixedRecords(const DataOptions&)>& records) {
  FormatEntry entry{.name = std::move(name),
                    .help = std::move(help),
                    .extensions = {},
                    .options = {"data.train", "data.validation", "data.test"},
                    .open = [records](const OpenRequest& request) {
                      return open_files(request, Labels::kWithTheRecords, {}, [&](const FileGroup& files) {
                        FixedRecords found = records(request.options);
                        if (request.input) found.fields.targets.reset();
                        return open_fixed_records(files.records.path, std::move(found));
                      });
                    }};
  entry.options.insert(entry.options.end(), own_options.begin(), own_options.end());
  return entry;
}

[[noreturn]] void refuse_layout(const std::string& field, const std::string& expected) {
  throw ConfigError("data.raw_layout: found {}, expected {}; an example: \"label:u8 features:u8[32,32,3]\"",
                    in_quotes(field), expected);
}

// "[32,32,3]" or nothing.
Shape parse_shape(const std::string& field, std::string_view text) {
  Shape shape;
  if (text.empty()) return {{1}};
  if (!text.starts_with('[') || !text.ends_with(']'))
    refuse_layout(field, "sizes in brackets after the type");
  text = text.substr(1, text.size() - 2);
  Index count = 1;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Index size = number_in<Index>(text.substr(begin, end - begin)).value_or(0);
    if (size < 1 || size > kMaxFixedBytes / count)
      refuse_layout(field, "sizes above 0, and no more than 2 GiB in a record");
    count *= size;
    shape.dims.push_back(size);
    begin = end + 1;
  }
  return shape;
}

void add_field(FixedRecords& records, const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) refuse_layout(text, "a name, a colon and a type");
  const std::string name = text.substr(0, colon);
  const std::size_t bracket = std::min(text.find('['), text.size());
  const std::string type = text.substr(colon + 1, bracket - colon - 1);
  const Element* element = find_element(type, ByteOrder::kLittle);
  if (element == nullptr) refuse_layout(text, "a type of u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool");
  const Shape shape = parse_shape(text, std::string_view(text).substr(bracket));
  DenseFields& fields = records.fields;
  const DenseField field{
      .file = {}, .offset = records.record_bytes, .count = shape.size(), .element = element};
  if (name == "features") {
    if (fields.features.element != nullptr) refuse_layout(text, "the features only once");
    fields.features = field;
    fields.shape = shape;
  } else if (name == "label") {
    if (fields.targets) refuse_layout(text, "the label only once");
    fields.targets = field;
  } else if (name != "skip") {
    refuse_layout(text, "one of the names features, label, skip");
  }
  records.record_bytes += field.count * element->bytes;
  if (records.record_bytes > kMaxFixedBytes) refuse_layout(text, "no more than 2 GiB in a record");
}

FixedRecords parse_layout(const std::string& layout) {
  error_if(
      layout.empty(),
      "data.raw_layout is not set: say what a record consists of, as in \"label:u8 features:u8[32,32,3]\"");
  FixedRecords records;
  std::istringstream fields(layout);
  for (std::string field; fields >> field;) add_field(records, field);
  if (records.fields.features.element == nullptr) refuse_layout(layout, "a field 'features'");
  return records;
}

constexpr Index kSide = 32;
constexpr Index kChannels = 3;
constexpr Index kImage = kSide * kSide * kChannels;

FixedRecords records_with(Index labels) {
  const Element* byte = find_element("u8", ByteOrder::kLittle);
  return {.record_bytes = labels + kImage,
          .fields = {.shape = {{kSide, kSide, kChannels}},
                     .features = {.offset = labels, .count = kImage, .element = byte, .planes = kChannels},
                     .targets = DenseField{.offset = labels - 1, .count = 1, .element = byte}}};
}

}  // namespace

FormatEntry raw_format() {
  return fixed_format(
      "raw",
      "binary files of records without a header, laid out as data.raw_layout says (features that are "
      "u8 are scaled to 0..1)",
      {"data.raw_layout"}, [](const DataOptions& options) { return parse_layout(options.raw_layout); });
}

FormatEntry cifar10_format() {
  return fixed_format("cifar10",
                      "the binary version of CIFAR-10: images of 32x32x3 (bytes are scaled to 0..1)", {},
                      [](const DataOptions&) { return records_with(1); });
}

FormatEntry cifar100_format() {
  return fixed_format("cifar100", "the binary version of CIFAR-100, with its fine labels", {},
                      [](const DataOptions&) { return records_with(2); });
}

}  // namespace lockstep
