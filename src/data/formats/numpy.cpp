// Data sets of numpy's arrays, one with the features and one with the labels: two .npy files, or two arrays
// of an .npz archive, or of two.
//
// The header of numpy's array files (NEP 1, "A simple file format for NumPy arrays", versions 1 to 3):
//
//   file   = 0x93 "NUMPY" major minor length header number*
//   length = bytes of the header, little endian: 16 bits in version 1, else 32
//   header = a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
//
// In an .npz archive each array is such a file.
//
// The fields of numpy's structured arrays, as the header of an array file describes them:
//
//   fields = "[" field { "," field } "]"
//   field  = "(" name "," ( type | fields ) [ "," shape ] ")"       shape = "(" size { "," size } ")"
//   name   = text | "(" title "," text ")"                          "" for bytes between fields
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr Index kMaxRecordBytes = Index{1} << 31;
constexpr int kMaxDepth = 16;  // levels of fields in fields

// A type of numpy, "<f4".
struct NumpyType {
  Index bytes = 0;
  const Element* element = nullptr;  // null for what is no number that is read
};

struct NumpyFields {
  std::vector<ArrayField> fields;
  Index record_bytes = 0;
};

// Errors: DataError if that is no type.
NumpyType parse_numpy_type(std::string_view type) {
  const auto fail = [&] { throw DataError("its header has the type {}", in_quotes(type)); };
  if (type.size() < 2) fail();
  Index number = 0;
  const auto [stop, error] = std::from_chars(type.data() + 2, type.data() + type.size(), number);
  const bool plain = error == std::errc() && stop == type.data() + type.size();
  if (error != std::errc() || number < 0 || number > kMaxRecordBytes) fail();
  NumpyType found{.bytes = type[1] == 'U' ? 4 * number : number};
  const ByteOrder order = type[0] == '>' ? ByteOrder::kBig : ByteOrder::kLittle;
  if (!plain || number > 8) return found;
  found.element = type.substr(1) == "b1" ? find_element("bool", order)
                                         : find_element(fmt::format("{}{}", type[1], 8 * number), order);
  return found;
}

// Takes "(60000, 28, 28)" off the start of a text; nothing if no shape stands there.
std::optional<std::vector<Index>> take_sizes(std::string_view& text) {
  const std::size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  std::string_view inside = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  std::vector<Index> sizes;
  for (;;) {
    inside.remove_prefix(std::min(inside.find_first_not_of(" ,"), inside.size()));
    if (inside.empty()) return sizes;
    Index size = 0;
    const auto [stop, error] = std::from_chars(inside.data(), inside.data() + inside.size(), size);
    if (error != std::errc() || size < 0) return std::nullopt;
    inside.remove_prefix(static_cast<std::size_t>(stop - inside.data()));
    sizes.push_back(size);
  }
}

// Fields of fields are called "outer.inner". Errors: DataError saying what is wrong with them.
class FieldParser {
 public:
  explicit FieldParser(std::string_view text) : rest_(text) {}

  NumpyFields parse() {
    parse_list("", 0);
    return std::move(found_);
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw DataError("its header has fields that are none: expected {}", what);
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" "), rest_.size())); }
  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }

  std::string take_text() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') fail("a name or a type in quotes");
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        return text;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      text += rest_[i];
    }
    fail("a quote that closes");
  }

  std::string take_name() {
    if (!take('(')) return take_text();
    take_text();
    expect(',');
    std::string name = take_text();
    expect(')');
    return name;
  }

  void add_bytes(Index bytes) {
    if (bytes < 0 || bytes > kMaxRecordBytes - found_.record_bytes) fail("no more than 2 GiB in a record");
    found_.record_bytes += bytes;
  }

  void parse_list(const std::string& outer, int depth) {
    if (depth > kMaxDepth) fail("fewer fields in fields");
    expect('[');
    while (!take(']')) {
      expect('(');
      const std::string name = take_name();
      expect(',');
      skip_blanks();
      if (rest_.starts_with('[')) {
        parse_list(outer + name + ".", depth + 1);
      } else {
        parse_type(name.empty() ? "" : outer + name);
      }
      expect(')');
      take(',');
    }
  }

  // The type and the shape of a field.
  void parse_type(const std::string& name) {
    ArrayField field{.name = name, .type = take_text(), .shape = {}, .piece = {}};
    if (take(',')) {
      skip_blanks();
      const auto shape = take_sizes(rest_);
      if (!shape) fail("a shape");
      field.shape = *shape;
    }
    const NumpyType type = parse_numpy_type(field.type);
    Index count = 1;
    Index bytes = type.bytes;
    for (const Index size : field.shape) {
      if (size > 0 && (count > kMaxRecordBytes / size || bytes > kMaxRecordBytes / size)) {
        fail("no more than 2 GiB in a record");
      }
      count *= size;
      bytes *= size;
    }
    field.piece = {.offset = found_.record_bytes, .count = count, .element = type.element};
    add_bytes(bytes);
    if (!name.empty()) found_.fields.push_back(std::move(field));
  }

  std::string_view rest_;
  NumpyFields found_;
};

constexpr Index kMaxHeaderBytes = Index{1} << 20;
constexpr int kNewestVersion = 3;  // version 2 with a header in UTF-8

[[noreturn]] void refuse_numpy_file(const std::string& path, const std::string& what) {
  throw DataError("'{}' is not an array file of numpy: {}", path, what);
}

std::string read_numpy_header(ByteStream& stream, const std::string& path, Index& offset) {
  std::array<std::byte, 12> start{};
  const Index found = stream.read(std::span(start).first(8));
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (found < 8 || std::string_view(reinterpret_cast<const char*>(start.data()), 6) != kMagic) {
    refuse_numpy_file(path,
                      fmt::format("it starts with {:02x}, expected \\x93NUMPY and a version{}",
                                  fmt::join(std::span(start).first(static_cast<std::size_t>(found)), " "),
                                  stream.cut_off()));
  }
  const auto major = std::to_integer<int>(start[6]);
  const auto minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > kNewestVersion || minor != 0) {
    refuse_numpy_file(
        path, fmt::format("it is of version {}.{} of the format, expected 1.0, 2.0 or 3.0; save it with "
                          "numpy.save",
                          major, minor));
  }
  const auto length_bytes = start[6] == std::byte{1} ? std::size_t{2} : std::size_t{4};
  const auto length = std::span(start).subspan(8, length_bytes);
  if (stream.read(length) < static_cast<Index>(length_bytes))
    refuse_numpy_file(path, "it ends in its header");
  const Element* const number = find_element(length_bytes == 2 ? "u16" : "u32", ByteOrder::kLittle);
  const auto header_bytes = static_cast<Index>(number->number(length.data()));
  if (header_bytes > kMaxHeaderBytes) {
    refuse_numpy_file(path, fmt::format("its header states a length of {} bytes, expected at most {}",
                                        header_bytes, kMaxHeaderBytes));
  }
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  if (stream.read(std::as_writable_bytes(std::span(header))) < header_bytes) {
    refuse_numpy_file(path, "it ends in its header" + stream.cut_off());
  }
  offset = 8 + static_cast<Index>(length_bytes) + header_bytes;
  return header;
}

// The text that follows 'key': in the dictionary.
std::string_view value_of(std::string_view header, std::string_view key, const std::string& path) {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) refuse_numpy_file(path, fmt::format("its header has no '{}'", key));
  std::string_view value = header.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

const Element* numpy_element(std::string_view value, const std::string& path) {
  const std::size_t end = value.empty() ? 0 : value.find(value.front(), 1);
  const std::string_view type = end == std::string_view::npos || end == 0 ? value : value.substr(1, end - 1);
  if (type.size() == 3) {
    if (const Element* element = parse_numpy_type(type).element) return element;
  }
  throw DataError(
      "'{}' holds numbers of the type {}, expected one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1: save it with "
      "array.astype('float32')",
      path, excerpt(type));
}

std::vector<Index> sizes_of(std::string_view header, const std::string& path) {
  std::string_view value = value_of(header, "shape", path);
  const auto sizes = take_sizes(value);
  if (!sizes) refuse_numpy_file(path, "its header has a shape that is none");
  if (sizes->empty()) refuse_numpy_file(path, "it holds a single number, expected an array");
  return *sizes;
}

std::vector<std::string> names_of_numbers(const std::vector<ArrayField>& fields) {
  std::vector<std::string> names;
  for (const ArrayField& field : fields) {
    if (field.piece.element != nullptr) names.push_back(field.name);
  }
  return names;
}

// The fields that the path names, or all of them, which must be numbers then.
std::vector<ArrayField> choose_fields(const std::vector<ArrayField>& all, const std::string& path) {
  const ArrayPath parts = split_array_path(path);
  std::vector<std::string> names;
  for (const ArrayField& field : all) names.push_back(field.name);
  std::vector<ArrayField> chosen;
  for (const std::string& name : parts.fields.empty() ? names : parts.field_names()) {
    const auto found = std::ranges::find(all, name, &ArrayField::name);
    error_if<DataError>(found == all.end(), "'{}' has no field {}, its fields: {}", path, in_quotes(name),
                        listed(names));
    if (found->piece.element == nullptr) {
      throw DataError(
          "'{}' has the field {} of the type {}, expected numbers: name the fields to use, as in '{}'", path,
          in_quotes(name), in_quotes(found->type),
          parts.file +
              ArrayPath{parts.file, parts.array, fmt::format("{}", fmt::join(names_of_numbers(all), "+"))}
                  .inside());
    }
    chosen.push_back(*found);
  }
  if (chosen.empty()) refuse_numpy_file(path, "its records have no fields");
  return chosen;
}

void read_fields(ArrayFile& file, std::string_view value, const std::string& path) {
  try {
    NumpyFields found = FieldParser(value).parse();
    error_if<DataError>(file.sizes.size() != 1, "its records of named fields have {} dimensions, expected 1",
                        file.sizes.size());
    file.records.record_bytes = found.record_bytes;
    file.fields = std::move(found.fields);
  } catch (const DataError& error) {
    refuse_numpy_file(path, error.what());
  }
  file.names_fields = !split_array_path(path).fields.empty();
  use_fields(file, choose_fields(file.fields, path));
}

ArrayFile open_numpy_file(const std::string& path, const std::string& key) {
  error_if<DataError>(
      ends_as(path, ".npz"),
      "{} names the archive '{}', which may hold several arrays: say which one, as in '{}:x_train'", key,
      path, path);
  return open_array_file(path, [&](ByteStream& stream, ArrayFile& file) {
    const std::string header = read_numpy_header(stream, path, file.records.offset);
    const std::string_view type = value_of(header, "descr", path);
    file.sizes = sizes_of(header, path);
    if (type.starts_with('[')) return read_fields(file, type, path);
    error_if<DataError>(!split_array_path(path).fields.empty(),
                        "'{}' is an array of numbers, whose records have no named fields", path);
    file.element = numpy_element(type, path);
    if (value_of(header, "fortran_order", path).starts_with("True") && file.sizes.size() > 1) {
      error_if<DataError>(stream.compressed(),
                          "'{}' is compressed and in Fortran order, so its records are not in one piece: "
                          "save it with numpy.ascontiguousarray(array)",
                          path);
      file.fortran_order = true;
    }
  });
}

// None if the array holds plain numbers.
std::vector<std::string> list_number_fields(const std::string& path) {
  if (holds_arrays(path)) return {};
  ByteStream stream(path);
  Index offset = 0;
  const std::string header = read_numpy_header(stream, path, offset);
  const std::string_view type = value_of(header, "descr", path);
  if (!type.starts_with('[')) return {};
  try {
    return names_of_numbers(FieldParser(type).parse().fields);
  } catch (const DataError& error) {
    refuse_numpy_file(path, error.what());
  }
}

}  // namespace

FormatEntry numpy_format() {
  FormatEntry entry = array_format(
      "numpy",
      "arrays of numpy, one with features (bytes are scaled to 0..1), one with labels: .npy files, or "
      "arrays of an .npz archive, named as in \"data.npz:x_train\"; of records with named fields, those that "
      "\"people.npy:age+hours\" names, or all but the labels",
      {".npy", ".npz", ".npy.gz"}, "array", open_numpy_file);
  entry.fields = list_number_fields;
  return entry;
}

}  // namespace lockstep
