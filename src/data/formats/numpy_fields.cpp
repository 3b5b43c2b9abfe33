#include "numpy_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"

namespace lockstep {
namespace {

constexpr Index kMaxRecordBytes = Index{1} << 31;
constexpr int kMaxDepth = 16;  // levels of fields in fields

class FieldParser {
 public:
  explicit FieldParser(std::string_view text) : rest_(text) {}

  NumpyFields parse() {
    parse_list("", 0);
    return std::move(found_);
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw DataError(fmt::format("its header has fields that are none: expected {}", what));
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

  std::vector<Index> take_shape() {
    std::vector<Index> sizes;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      Index size = 0;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0) fail("a shape");
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      sizes.push_back(size);
      take(',');
    }
    return sizes;
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
    if (take(',')) field.shape = take_shape();
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

}  // namespace

NumpyType parse_numpy_type(std::string_view type) {
  const auto fail = [&] { throw DataError(fmt::format("its header has the type {}", in_quotes(type))); };
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

NumpyFields parse_numpy_fields(std::string_view text) {
  return FieldParser(text).parse();
}

}  // namespace lockstep
