#include "lockstep/base/csv.h"

namespace lockstep {

std::string csv_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_cell(std::string_view text) {
  const bool plain = text.find_first_of(",\"\n\r") == std::string_view::npos;
  return plain ? std::string(text) : csv_quoted(text);
}

}  // namespace lockstep
