#include "lockstep/base/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/base/embedded_text.h"

namespace lockstep {
namespace {

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (same_spelling(word, wanted)) return true;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return false;
}

}  // namespace

std::vector<Synonym> embedded_synonyms(std::string_view name) {
  std::vector<Synonym> synonyms;
  for (const TextEntry& entry : embedded_entries(name)) {
    for (const auto& [field, text] : entry.fields) {
      if (field == "words") synonyms.push_back({text, entry.name, ""});
      if (field == "hint") synonyms.back().hint = text;
    }
  }
  return synonyms;
}

std::span<const Synonym> name_synonyms() {
  static const std::vector<Synonym> kSynonyms = embedded_synonyms("texts/other-words.txt");
  return kSynonyms;
}

bool same_spelling(std::string_view a, std::string_view b) {
  const auto skip = [](std::string_view& text) {
    while (!text.empty() && (text.front() == '_' || text.front() == '-')) text.remove_prefix(1);
  };
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (skip(a), skip(b); !a.empty() && !b.empty(); skip(a), skip(b)) {
    if (lower(a.front()) != lower(b.front())) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && b.empty();
}

const Synonym* find_synonym(std::span<const Synonym> synonyms, std::string_view word,
                            std::span<const std::string> known) {
  for (const Synonym& synonym : synonyms) {
    if (has_word(synonym.words, word) && std::ranges::find(known, synonym.name) != known.end())
      return &synonym;
  }
  return nullptr;
}

std::string describe(const Synonym& synonym, std::string_view prefix) {
  return synonym.hint.empty() ? fmt::format("Lockstep calls it '{}{}'", prefix, synonym.name) : synonym.hint;
}

}  // namespace lockstep
