// A guide is Markdown. A key stands in its blocks of TOML as `name = value` below its section, and in its
// prose and its commands as `section.name`.
#include "help_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "app/setup/catalogs.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    visit(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
}

// The first line of a config in the text that gives the key a value; "" if there is none.
std::string find_example(std::string_view text, std::string_view key) {
  const std::size_t dot = key.find('.');
  const std::string section = fmt::format("[{}]", key.substr(0, dot));
  const std::string beginning = fmt::format("{} = ", key.substr(dot + 1));
  bool inside = false;
  std::string example;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with("```")) inside = false;
    if (line.starts_with('[')) inside = line.starts_with(section);
    if (!inside || !line.starts_with(beginning) || !example.empty()) return;
    example = fmt::format("{}  {}", section, trimmed(line.substr(0, line.find(" #"))));
  });
  return example;
}

bool names_key(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const auto is_part = [&](std::size_t place) {
      if (place >= text.size()) return false;
      const char c = text[place];
      return c == '_' || ('a' <= c && c <= 'z') || ('0' <= c && c <= '9');
    };
    if (!is_part(at + key.size()) && (at == 0 || (!is_part(at - 1) && text[at - 1] != '.'))) return true;
  }
  return false;
}

}  // namespace

std::span<const Guide> guides() {
  static const std::vector<Guide> kGuides = [] {
    constexpr std::string_view kFolder = "guides/";
    constexpr std::string_view kExtension = ".md";
    std::vector<Guide> guides;
    for (const EmbeddedText& file : embedded_texts()) {
      if (!file.name.starts_with(kFolder)) continue;
      const std::size_t size = file.name.size() - kFolder.size() - kExtension.size();
      guides.push_back({file.name.substr(kFolder.size(), size), file.text});
    }
    return guides;
  }();
  return kGuides;
}

std::string number_tables() {
  std::string tables;
  bool inside = false;
  for_each_line(std::ranges::find(guides(), "output", &Guide::name)->text, [&](std::string_view line) {
    inside = inside || line.starts_with("<!-- numbers: ");
    if (inside) tables.append(line).append("\n");
    inside = inside && !line.empty();
  });
  return tables;
}

KnownNames names_with_guides() {
  KnownNames names = known_names();
  for (const Guide& guide : guides()) names.guides.emplace_back(guide.name);
  names.numbers = number_tables();
  return names;
}

std::string guide_page(const Guide& guide) {
  std::string page;
  for_each_line(guide.text, [&](std::string_view line) {
    if (line.starts_with("<!-- ") && line.ends_with("-->")) return;
    page.append(line).append("\n");
  });
  return page;
}

std::string_view guide_title(const Guide& guide) {
  std::string_view title = guide.text.substr(0, guide.text.find('\n'));
  while (title.starts_with('#') || title.starts_with(' ')) title.remove_prefix(1);
  return title;
}

KeyUses find_uses(std::string_view key) {
  KeyUses uses;
  for (const Guide& guide : guides()) {
    const std::string example = find_example(guide.text, key);
    if (!example.empty() || names_key(guide.text, key)) uses.names.push_back(guide.name);
    if (uses.example.empty()) uses.example = example;
  }
  return uses;
}

}  // namespace lockstep
