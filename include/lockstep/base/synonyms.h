// Words of Keras, PyTorch, scikit-learn, LightGBM, Horovod and DeepSpeed for names in catalogs, and what
// Lockstep calls the same thing. Errors about unknown names ask here before they guess at a typing mistake.
// Words for config keys stand at the declaration of the key.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Words that mean the same thing elsewhere, and our name for it.
struct Synonym {
  std::string_view words;      ///< separated by blanks; case, '_' and '-' do not matter
  std::string_view name;       ///< a name of a catalog
  std::string_view hint = {};  ///< the text instead of "Lockstep calls it 'NAME'"
};

/// Words for names in catalogs: losses, layers, optimizers, schedules, strategies, formats and so on.
std::span<const Synonym> name_synonyms();

/// Whether the two differ in nothing but case, '_' and '-': how words are compared.
bool same_spelling(std::string_view a, std::string_view b);

/// Whether `wanted` is one of `words`, which blanks separate.
bool has_word(std::string_view words, std::string_view wanted);

/// The entry for `word` whose name is one of `known`; null if there is none.
const Synonym* find_name_synonym(std::string_view word, std::span<const std::string> known);

/// The hint, or "Lockstep calls it 'name'".
std::string describe(const Synonym& synonym);

}  // namespace lockstep
