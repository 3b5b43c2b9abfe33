// A guide is Markdown. Of interest are its blocks of TOML, in which a key stands as `name = value` below its
// section, its commands, in which it stands as `--section.name value`, and its prose, which has
// `section.name`.
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

// The text before a comment of TOML; a '#' inside quotes begins none.
std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return trimmed(line.substr(0, i));
  }
  return trimmed(line);
}

// Finds examples of one key, line by line.
class ExampleSearch {
 public:
  explicit ExampleSearch(std::string_view key)
      : section_(key.substr(0, key.find('.'))), name_(key.substr(key.find('.') + 1)), flag_("--") {
    flag_ += key;
  }

  void read(std::string_view line) {
    if (line.starts_with("```")) {
      in_toml_ = line == "```toml";
      here_ = "";
      return;
    }
    const std::string_view text = without_comment(line);
    if (in_toml_ && text.starts_with('[')) here_ = text.substr(1, text.find(']') - 1);
    if (in_toml_ && here_ == section_ && assigns(text)) {
      ++lines_;
      if (toml_.empty()) toml_ = text;
    }
    if (const std::size_t at = line.find(flag_); at != std::string_view::npos && command_.empty()) {
      const std::string_view rest = line.substr(at);
      if (rest.size() > flag_.size() && rest[flag_.size()] == ' ') command_ = with_value(rest);
    }
  }
  // Lines of configs so far that give the key a value.
  int lines() const { return lines_; }
  // The line of a config wins: most keys are written there.
  std::string found() const {
    if (!toml_.empty()) return fmt::format("[{}]  {}", section_, toml_);
    return std::string(command_);
  }

 private:
  bool assigns(std::string_view text) const {
    return text.starts_with(name_) && trimmed(text.substr(name_.size())).starts_with('=');
  }
  // Up to the end of the value, which may be in quotes.
  std::string_view with_value(std::string_view rest) const {
    const std::size_t value = flag_.size() + 1;
    const char quote = value < rest.size() && (rest[value] == '"' || rest[value] == '\'') ? rest[value] : ' ';
    const std::size_t end = rest.find(quote, quote == ' ' ? value : value + 1);
    return rest.substr(0, end == std::string_view::npos || quote == ' ' ? end : end + 1);
  }

  std::string_view section_, name_;
  std::string flag_;
  bool in_toml_ = false;
  int lines_ = 0;
  std::string_view here_;  // the section that the lines are in
  std::string_view toml_, command_;
};

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

KeyUses find_uses(std::span<const Guide> guides, std::string_view key) {
  ExampleSearch search(key);
  KeyUses uses;
  for (const Guide& guide : guides) {
    const int before = search.lines();
    for_each_line(guide.text, [&](std::string_view line) { search.read(line); });
    if (search.lines() > before || names_key(guide.text, key)) uses.names.push_back(guide.name);
  }
  uses.example = search.found();
  return uses;
}

}  // namespace lockstep
