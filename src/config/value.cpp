#include "lockstep/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string take_plain(std::string_view& text) {
  const std::string_view value = text.substr(0, text.find(','));
  text.remove_prefix(value.size());
  return std::string(value);
}

// Nothing if the quote that `text` starts with is not closed.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (;;) {
    const std::size_t quote = text.find('"', 1);
    if (quote == std::string_view::npos) return std::nullopt;
    value += text.substr(1, quote - 1);
    text.remove_prefix(quote + 1);
    if (!text.starts_with('"')) return value;
    value += '"';
  }
}

}  // namespace

std::optional<std::string> ValueType<std::string>::parse(std::string_view text) {
  if (!is_text(text)) return std::nullopt;
  return std::string(text);
}

std::optional<bool> ValueType<bool>::parse(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::optional<Index> ValueType<Index>::parse(std::string_view text) {
  return number_in<Index>(text);
}

std::optional<double> ValueType<double>::parse(std::string_view text) {
  const std::optional<double> value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string ValueType<double>::text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::optional<std::vector<double>> ValueType<std::vector<double>>::parse(std::string_view text) {
  std::vector<double> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto value = ValueType<double>::parse(text.substr(begin, end - begin));
    if (!value) return std::nullopt;
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}

std::string ValueType<std::vector<double>>::text(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(ValueType<double>::text(value));
  return fmt::format("{}", fmt::join(texts, ","));
}

// Texts with commas between them. One with a comma in it, or that starts with a quote, stands in double
// quotes, with those in it doubled, as in a CSV file.
std::optional<std::vector<std::string>> ValueType<std::vector<std::string>>::parse(std::string_view text) {
  std::vector<std::string> values;
  while (!text.empty() || !values.empty()) {
    const std::optional<std::string> value = text.starts_with('"') ? take_quoted(text) : take_plain(text);
    if (!value || !is_text(*value)) return std::nullopt;
    values.push_back(*value);
    if (text.empty()) break;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
  return values;
}

std::string ValueType<std::vector<std::string>>::text(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  for (const std::string& value : values) {
    const bool plain = value.find(',') == std::string::npos && !value.starts_with('"');
    texts.push_back(plain ? value : csv_quoted(value));
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace lockstep
