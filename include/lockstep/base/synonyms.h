// Words of Keras, PyTorch, scikit-learn, LightGBM, Horovod and DeepSpeed, and what Lockstep calls the same
// thing. Errors about unknown keys and names ask here before they guess at a typing mistake.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Words that mean the same thing elsewhere, and our name for it.
struct Synonym {
  std::string_view words;      ///< separated by blanks; case, '_' and '-' do not matter
  std::string_view name;       ///< a config key, or a name of a catalog; "" if there is no such thing here
  std::string_view hint = {};  ///< the text instead of "Lockstep calls it 'NAME'"
};

/// Words for config keys. A word with a section ("eval.batch_size") stands for itself in that section only.
std::span<const Synonym> key_synonyms();
/// Words for names in catalogs: losses, layers, optimizers, schedules, strategies, formats and so on.
std::span<const Synonym> name_synonyms();

/// Whether the two differ in nothing but case, '_' and '-': how words are compared.
bool same_spelling(std::string_view a, std::string_view b);

/// The entry for a key that is not declared, "train.learning_rate" or "learning-rate"; null if there is none.
const Synonym* find_key_synonym(std::string_view key);
/// The entry for `word` whose name is one of `known`; null if there is none.
const Synonym* find_name_synonym(std::string_view word, std::span<const std::string> known);

/// The hint, or "Lockstep calls it 'PREFIXname'".
std::string describe(const Synonym& synonym, std::string_view prefix = "");

}  // namespace lockstep
