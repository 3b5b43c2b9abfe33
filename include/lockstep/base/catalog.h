// A catalog is an explicit list of entries, each with a `name`; the lookup here is the one place that turns a
// name from the config into an entry, and a misspelt one into an error with the nearest name.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The known name that differs from `wanted` in case, '_' and '-' only, else the one with the smallest edit
/// distance, or "" if none is close enough to be meant.
std::string nearest_name(std::string_view wanted, std::span<const std::string> known);

/// "; did you mean 'adam'?" for a misspelt name, "; Lockstep calls it 'dense'" for a word of other programs,
/// "" if there is nothing to suggest.
std::string suggestion(std::string_view wanted, std::span<const std::string> known);

/// Throws ConfigError: "unknown KIND 'NAME'; did you mean 'X'? (known: a, b, c)".
[[noreturn]] void throw_unknown_name(std::string_view kind, std::string_view name,
                                     std::span<const std::string> known);

/// The names of the entries of a catalog, or of whatever else has some.
template <class Catalog>
std::vector<std::string> catalog_names(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const auto& entry : catalog) names.emplace_back(entry.name);
  return names;
}

/// The entries of several lists in the order of `names`; those that are not among them come last.
template <class Entry>
std::vector<Entry> in_order(std::span<const std::string_view> names,
                            std::initializer_list<std::vector<Entry>> lists) {
  std::vector<Entry> all;
  for (const std::vector<Entry>& list : lists) all.insert(all.end(), list.begin(), list.end());
  std::ranges::stable_sort(
      all, {}, [names](const Entry& entry) { return std::ranges::find(names, entry.name) - names.begin(); });
  return all;
}

/// The entry called `name`. `kind` is the word for such an entry in the error ("optimizer", "layer").
/// Errors: ConfigError if there is none.
template <class Entry>
const Entry& find_entry(std::span<const Entry> catalog, std::string_view kind, std::string_view name) {
  for (const Entry& entry : catalog) {
    if (entry.name == name) return entry;
  }
  throw_unknown_name(kind, name, catalog_names(catalog));
}

// Words of other programs (Keras, PyTorch, scikit-learn and so on) for names of ours. Errors about unknown
// names ask here before they guess at a typing mistake. The words themselves are data: configs/texts.

/// Words that mean the same thing elsewhere, and our name for it.
struct Synonym {
  std::string words;  ///< separated by blanks; case, '_' and '-' do not matter
  std::string name;
  std::string hint;  ///< the text instead of "Lockstep calls it 'NAME'"; may be empty
};

/// The fields "words" and "hint" of the entries of configs/NAME.
std::vector<Synonym> embedded_synonyms(std::string_view name);

/// Words for names in catalogs: losses, layers, optimizers, schedules, strategies, formats and so on.
std::span<const Synonym> name_synonyms();

/// Whether the two differ in nothing but case, '_' and '-': how words are compared.
bool same_spelling(std::string_view a, std::string_view b);

/// The one for `word` whose name is one of `known`; null if there is none.
const Synonym* find_synonym(std::span<const Synonym> synonyms, std::string_view word,
                            std::span<const std::string> known);

/// The hint, or "Lockstep calls it 'name'"; `prefix`: "--" where the name is a flag.
std::string describe(const Synonym& synonym, std::string_view prefix = "");

}  // namespace lockstep
