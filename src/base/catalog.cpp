#include "lockstep/base/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Levenshtein distance, with two neighbouring letters swapped counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (same_spelling(word, wanted)) return true;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return false;
}

}  // namespace

std::string nearest_name(std::string_view wanted, std::span<const std::string> known) {
  constexpr std::size_t kMaxLetters = 100;  // the longest name that can be a typing error of another
  if (wanted.size() > kMaxLetters) return "";
  const auto same =
      std::ranges::find_if(known, [wanted](const std::string& name) { return same_spelling(name, wanted); });
  if (same != known.end()) return *same;
  std::string best;
  // One edit in three letters: with more, any two short names would be near each other.
  std::size_t best_distance = std::max<std::size_t>(1, (wanted.size() + 1) / 3) + 1;
  for (const std::string& name : known) {
    if (name.size() >= wanted.size() + best_distance) continue;  // the lengths alone differ by as much
    const std::size_t distance = edit_distance(wanted, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view wanted, std::span<const std::string> known) {
  if (const Synonym* synonym = find_synonym(name_synonyms(), wanted, known)) return "; " + describe(*synonym);
  const std::string nearest = nearest_name(wanted, known);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

void throw_unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> known) {
  throw ConfigError("unknown {} {}{} (known: {})", kind, in_quotes(name), suggestion(name, known),
                    fmt::join(known, ", "));
}

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
  for (skip(a), skip(b); !a.empty() && !b.empty(); skip(a), skip(b)) {
    if (lower_case(a.front()) != lower_case(b.front())) return false;
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
