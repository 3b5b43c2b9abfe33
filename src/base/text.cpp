#include "lockstep/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep {
namespace {

// The start of `text` that fits; no character is cut in two.
std::string_view start_of(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && continues(text[end])) --end;
  return text.substr(0, end);
}

// Marks and overrides of the direction of writing, and the two line ends of Unicode.
bool is_invisible(char32_t character) {
  return character == 0x200e || character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto rest = [&](std::size_t i) { return static_cast<char32_t>(byte(i) & 0x3f); };
    const bool control =
        byte(0) < 0x20 || byte(0) == 0x7f || (length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0);
    const char32_t wide =
        length == 3 ? static_cast<char32_t>(byte(0) & 0x0f) << 12 | rest(1) << 6 | rest(2) : U'\0';
    if (control || (length == 1 && byte(0) >= 0x80)) {
      for (std::size_t i = 0; i < length; ++i) shown += fmt::format("\\x{:02x}", byte(i));
    } else if (is_invisible(wide)) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(wide));
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::string length_of(std::string_view text) {
  return fmt::format(" ({} bytes)", with_commas(std::ssize(text)));
}

}  // namespace

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), lower_case);
  return lower;
}

std::string in_case_of(std::string_view model, std::string_view text) {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto capital = [&](char c) { return is_small(c) ? static_cast<char>(c - 'a' + 'A') : c; };
  std::string result = in_lower_case(text);
  if (std::ranges::none_of(model, is_small)) {
    std::ranges::transform(result, result.begin(), capital);
  } else if (!is_small(model.front()) && !result.empty()) {
    result.front() = capital(result.front());
  }
  return result;
}

bool ends_as(std::string_view path, std::string_view end) {
  return path.size() >= end.size() &&
         std::ranges::equal(path.substr(path.size() - end.size()), end, {}, lower_case, lower_case);
}

bool ends_as(std::string_view path, std::span<const std::string> ends) {
  return std::ranges::any_of(ends, [path](const std::string& end) { return ends_as(path, end); });
}

std::string plural(Index count, std::string_view noun) {
  const bool takes_es = noun.ends_with("s") || noun.ends_with("ch");
  return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : takes_es ? "es" : "s");
}

std::string with_commas(Index value) {
  std::string grouped = fmt::format("{}", value);
  const std::size_t first_digit = value < 0 ? 1 : 0;
  for (std::size_t end = grouped.size(); end > first_digit + 3;) {
    end -= 3;
    grouped.insert(end, 1, ',');
  }
  return grouped;
}

std::string count_text(double value) {
  constexpr double kMaxCount = 1e15;
  return std::abs(value) <= kMaxCount ? with_commas(std::llround(value)) : "-";
}

std::string rate_text(double value) {
  constexpr double kFew = 10;
  return value > 0 && value < kFew ? fmt::format("{:.2g}", value) : count_text(value);
}

std::string sample_rate(double samples, Index tokens) {
  return rate_text(samples) + " samples/s" +
         (tokens > 0 ? fmt::format(", {} tokens/s", rate_text(samples * static_cast<double>(tokens))) : "");
}

std::string short_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.5g}", value) : "-";
}

std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<Index>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

// The ranges are those of table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above
// U+10FFFF.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto within = [&byte](std::size_t i, unsigned low, unsigned high) {
    return low <= byte(i) && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return within(1, 0x80, 0xbf) ? 2 : 0;
  if (lead < 0xf0) {
    const bool second = within(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf);
    return second && within(2, 0x80, 0xbf) ? 3 : 0;
  }
  const bool second = within(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf);
  return second && within(2, 0x80, 0xbf) && within(3, 0x80, 0xbf) ? 4 : 0;
}

bool is_text(std::string_view text) {
  // Nearly all texts are ASCII, which is seen in one go.
  bool other = false;
  for (const char c : text) other |= static_cast<signed char>(c) <= 0;
  if (!other) return true;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || text.front() == '\0') return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view marked_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ? "UTF-16" : "";
}

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line +=
          i < left ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

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

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (code < 0x20 || code == 0x7f) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string excerpt(std::string_view text, std::size_t max_bytes) {
  const std::string_view start = start_of(text, max_bytes);
  return printable(start) + (start.size() < text.size() ? "..." + length_of(text) : "");
}

std::string in_quotes(std::string_view text) {
  const std::string_view start = start_of(text, kMaxQuotedBytes);
  const std::string shown = printable(start);
  if (start.size() == text.size()) return fmt::format("'{}'", shown);
  return fmt::format("'{}...'{}", shown, length_of(text));
}

std::string listed(std::span<const std::string> names, std::size_t max_names) {
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(max_names, names.size()))) {
    shown.push_back(excerpt(name));
  }
  const std::string rest =
      names.size() <= max_names ? "" : fmt::format(", ... ({} in all)", with_commas(std::ssize(names)));
  return fmt::format("{}{}", fmt::join(shown, ", "), rest);
}

std::string first_lines(std::span<const std::string> lines, std::size_t max_lines) {
  const std::string rest =
      lines.size() <= max_lines ? "" : fmt::format("\n  ... ({} in all)", with_commas(std::ssize(lines)));
  return fmt::format("{}{}", fmt::join(lines.first(std::min(max_lines, lines.size())), "\n  "), rest);
}

}  // namespace lockstep
