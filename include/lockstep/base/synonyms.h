// Words of other programs (Keras, PyTorch, scikit-learn and so on) for names of ours. Errors about unknown
// names ask here before they guess at a typing mistake. The words themselves are data: configs/texts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

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
