#include "toml_text.h"

#include <fmt/format.h>

namespace lockstep {

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code == 0x7f) {
      out += fmt::format("\\u{:04X}", code);
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string ignore_line(const std::string& column) {
  constexpr std::size_t kMaxName = 100;
  return column.size() > kMaxName ? "" : fmt::format("ignore = [{}]", toml_text(column));
}

}  // namespace lockstep
