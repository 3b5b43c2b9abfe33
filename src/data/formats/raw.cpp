// Binary files whose records are laid out as the config declares: "label:u8 features:u8[32,32,3]". Numbers
// are little endian.
//
//   layout = field (" " field)*
//   field  = ("features" | "label" | "skip") ":" type [ "[" size ("," size)* "]" ]
//   type   = u8 | i8 | u16 | i16 | u32 | i32 | u64 | i64 | f32 | f64 | bool
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "data/record_file.h"
#include "fixed_records.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr Index kMaxBytes = Index{1} << 31;

[[noreturn]] void refuse_layout(const std::string& field, const std::string& expected) {
  throw ConfigError(
      fmt::format("data.raw_layout: found {}, expected {}; an example: \"label:u8 features:u8[32,32,3]\"",
                  in_quotes(field), expected));
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
    Index size = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, size);
    if (error != std::errc() || stop != text.data() + end || size < 1 || size > kMaxBytes / count) {
      refuse_layout(field, "sizes above 0, and no more than 2 GiB in a record");
    }
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
  const FixedField field{.offset = records.record_bytes, .count = shape.size(), .element = element};
  if (name == "features") {
    if (records.features.element != nullptr) refuse_layout(text, "the features only once");
    records.features = field;
    records.shape = shape;
  } else if (name == "label") {
    if (records.targets) refuse_layout(text, "the label only once");
    records.targets = field;
  } else if (name != "skip") {
    refuse_layout(text, "one of the names features, label, skip");
  }
  records.record_bytes += field.count * element->bytes;
  if (records.record_bytes > kMaxBytes) refuse_layout(text, "no more than 2 GiB in a record");
}

FixedRecords parse_layout(const std::string& layout) {
  if (layout.empty()) {
    throw ConfigError(
        "data.raw_layout is not set: say what a record consists of, as in \"label:u8 features:u8[32,32,3]\"");
  }
  FixedRecords records;
  std::istringstream fields(layout);
  for (std::string field; fields >> field;) add_field(records, field);
  if (records.features.element == nullptr) refuse_layout(layout, "a field 'features'");
  return records;
}

}  // namespace

FormatEntry raw_format() {
  return {
      .name = "raw",
      .help =
          "binary files of records without a header, laid out as data.raw_layout says (features that are "
          "u8 are scaled to 0..1)",
      .extensions = {},
      .options = {"data.train", "data.validation_share", "data.validation", "data.test", "data.raw_layout"},
      .open =
          [](const OpenRequest& request) {
            return open_files(request, Labels::kWithTheRecords, {}, [&](const FileGroup& files) {
              return open_fixed_records(files.records, parse_layout(request.options.raw_layout), true);
            });
          },
      .open_input =
          [](const InputRequest& request) {
            return open_input_files(request, {}, [&](const FileGroup& files) {
              return open_fixed_records(files.records, parse_layout(request.options.raw_layout), false);
            });
          }};
}

}  // namespace lockstep
