// Columns as data.columns declares them, and texts in other encodings. The first byte chooses options; the
// first line behind it declares columns, separated by '|'; the rest is a table with a column y to learn.
// Whatever is declared of whatever values, reading ends in records or in an error for the user.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "read_table.h"
#include "scratch_file.h"

namespace lockstep::fuzz {
namespace {

TableOptions options_of(std::uint8_t byte) {
  static const std::array kEncodings{"auto", "utf-16", "windows-1252", "latin1"};
  TableOptions options;
  options.encoding = kEncodings[byte % 4];
  options.decimal = (byte & 4) == 0 ? "." : ",";
  options.thousands = (byte & 8) == 0 ? "none" : options.decimal == "." ? "," : ".";
  options.scale = (byte & 16) == 0 ? "robust bins(4)" : "minmax";
  options.strict = (byte & 32) != 0;
  options.missing = (byte & 64) == 0 ? "mean" : "constant(-1.5)";
  options.on_bad_record = OnBadRecord::kSkip;
  options.max_bad_share = 1;
  return options;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace
}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size < 2) return 0;
  TableOptions options = fuzz::options_of(data[0]);
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t line_end = std::min(text.find('\n'), text.size());
  if (!is_text(text.substr(0, line_end))) return 0;  // no config has such a text
  options.columns = fuzz::split(text.substr(0, line_end), '|');
  text.remove_prefix(std::min(line_end + 1, text.size()));
  options.label = {"y"};
  try {
    fuzz::read_table(fuzz::scratch_file(std::as_bytes(std::span(text)), ".csv"), options);
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
