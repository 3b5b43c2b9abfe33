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

// Headings stand outside of blocks, in which a '#' begins a comment.
std::vector<GuideSection> sections_of(const Guide& guide) {
  std::vector<GuideSection> sections;
  bool in_block = false;
  for_each_line(guide.text, [&](std::string_view line) {
    if (line.starts_with("```")) in_block = !in_block;
    if (line.starts_with('#') && !in_block)
      sections.push_back({guide.name, line.substr(line.find(' ') + 1), line});
    GuideSection& last = sections.back();
    last.text = std::string_view(last.text.data(), line.data() + line.size());
  });
  return sections;
}

// In small letters, with a blank for '_' and '-', so that each word of it stands between others.
std::string plain(std::string_view text) {
  std::string words(text);
  std::ranges::transform(words, words.begin(),
                         [](char c) { return c == '_' || c == '-' ? ' ' : lower_case(c); });
  return words;
}

// How often a plain text has the words: 2 for each time, 1 where a longer word begins with them.
int count_words(std::string_view text, std::string_view words) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= '0' && text[at] <= '9'));
  };
  int count = 0;
  for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) {
    if (at == 0 || !is_letter(at - 1)) count += is_letter(at + words.size()) ? 1 : 2;
  }
  return count;
}

int score_of(const GuideSection& section, std::string_view words) {
  int score = std::min(count_words(plain(section.text), words), kNamed - 1);
  score += kNamed * count_words(plain(section.heading), words);
  for_each_line(section.text, [&](std::string_view line) {
    if (!line.starts_with("<!-- help: ")) return;
    const std::string answers = ", " + plain(line.substr(11, line.rfind(" -->") - 11)) + ",";
    if (answers.find(fmt::format(", {},", words)) != std::string::npos) score += 10 * kNamed;
  });
  return score;
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

KnownNames names_with_guides() {
  KnownNames names = known_names();
  for (const Guide& guide : guides()) names.guides.emplace_back(guide.name);
  return names;
}

std::string guide_page(std::string_view text) {
  std::string page;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with("<!-- ") && line.ends_with("-->")) return;
    page.append(line).append("\n");
  });
  return page;
}

std::vector<GuideSection> find_sections(std::string_view words) {
  const std::string wanted = plain(words);
  std::vector<GuideSection> found;
  for (const Guide& guide : guides()) {
    for (GuideSection& section : sections_of(guide)) {
      section.score = score_of(section, wanted);
      if (section.score > 0) found.push_back(section);
    }
  }
  std::ranges::stable_sort(found, std::greater(), &GuideSection::score);
  const bool plural = found.empty() && wanted.ends_with('s') && !wanted.ends_with("ss");
  if (plural) return find_sections(wanted.substr(0, wanted.size() - (wanted.ends_with("sses") ? 2 : 1)));
  return found;
}

}  // namespace lockstep
