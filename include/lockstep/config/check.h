// Rules over several options: what one option's own check cannot see. Nothing that was asked for is dropped
// silently.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

/// An option that chooses between entries which read different keys, such as the optimizers.
struct Choice {
  std::string chooser;                                           ///< "train.optimizer"
  std::string chosen;                                            ///< "adam"
  std::vector<std::string> keys;                                 ///< keys that the chosen entry reads
  std::vector<std::string> all_keys;                             ///< keys that any entry reads
  std::map<std::string, std::vector<std::string>> readers = {};  ///< the entries that read a key
};

/// The Choice of `chosen` in a catalog whose entries have a name and the keys that they read (`options`).
template <class Entry>
Choice choice_in(std::span<const Entry> catalog, std::string chooser, std::string chosen) {
  Choice choice{std::move(chooser), std::move(chosen), {}, {}};
  for (const Entry& entry : catalog) {
    if (entry.name == choice.chosen) choice.keys = entry.options;
    choice.all_keys.insert(choice.all_keys.end(), entry.options.begin(), entry.options.end());
    for (const std::string& key : entry.options) choice.readers[key].push_back(entry.name);
  }
  return choice;
}

/// Options of which exactly one is to be given.
struct Alternatives {
  std::vector<std::string> keys;
  std::string meaning;
};
std::span<const Alternatives> alternative_keys();

/// The keys that nobody reads: entries of `choices` would, but none of the chosen ones does, or what an
/// option's `read_if` asks for is missing.
std::set<std::string> keys_without_effect(const Config& config, std::span<const Option> options,
                                          std::span<const Choice> choices);

/// `given`: the keys that the file or a flag set; `choices`: the catalogs in use.
/// Errors: ConfigError if not exactly one of the models, of the lengths of the run, or of the two batch sizes
/// is given; or if a given key has no effect.
void check_config(const Config& config, const std::set<std::string>& given, std::span<const Option> options,
                  std::span<const Choice> choices);

}  // namespace lockstep
