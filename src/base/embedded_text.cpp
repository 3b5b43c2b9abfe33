#include "lockstep/base/embedded_text.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "lockstep/base/text.h"

namespace lockstep {

std::string_view embedded_text(std::string_view name) {
  return std::ranges::find(embedded_texts(), name, &EmbeddedText::name)->text;
}

std::string TextEntry::get(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &std::pair<std::string, std::string>::first);
  return found == fields.end() ? "" : found->second;
}

std::vector<std::string> TextEntry::get_all(std::string_view field) const {
  std::vector<std::string> texts;
  for (const auto& [key, text] : fields) {
    if (key == field) texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> TextEntry::get_words(std::string_view field) const {
  std::istringstream words(get(field));
  return {std::istream_iterator<std::string>(words), {}};
}

// A name begins its line, a field stands two blanks further in, what continues it further still.
std::vector<TextEntry> embedded_entries(std::string_view name) {
  std::vector<TextEntry> entries;
  std::istringstream lines{std::string(embedded_text(name))};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || line.starts_with('#')) continue;
    if (indent == 0) {
      entries.push_back({line, {}});
    } else if (indent == 2) {
      const std::size_t colon = line.find(':');
      entries.back().fields.emplace_back(line.substr(2, colon - 2), trimmed(line.substr(colon + 1)));
    } else {
      entries.back().fields.back().second.append(" ").append(trimmed(line));
    }
  }
  return entries;
}

}  // namespace lockstep
