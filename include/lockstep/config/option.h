// One declaration of every option, once for the process: an option reads and writes its field of any Config.
// From this list come the TOML keys, the command-line flags, the help, the reference, the resolved dump, the
// hash, and the rules of resuming and of keys without effect; nothing about an option is said anywhere else,
// except its default, which stands at the field.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/catalog.h"
#include "lockstep/config/config.h"
#include "lockstep/config/value.h"

namespace lockstep {

/// A property of a config on which it depends whether an option is read.
using ConfigFact = std::function<bool(const Config&)>;

/// Properties of a config that only the catalogs know. An empty one is taken for true.
struct ConfigFacts {
  ConfigFact has_batch_norm;  ///< the model has such a layer
  ConfigFact asynchronous;    ///< workers do not wait for each other
  ConfigFact uses_algorithm;  ///< an exchange algorithm hands the whole sum of the gradients to all ranks
  ConfigFact calibrates;      ///< and the fastest one is to be found
};

/// Names and facts that only the catalogs know. They are handed in, so that this folder needs no catalog. No
/// list of names may be empty.
struct KnownNames {
  std::vector<std::string> losses;
  std::vector<std::string> optimizers;
  std::vector<std::string> schedules;
  std::vector<std::string> formats;
  std::vector<std::string> strategies;
  std::vector<std::string> algorithms;
  std::vector<std::string> codecs;
  std::vector<std::string> presets;
  std::vector<std::string> metrics;
  std::map<std::string, std::vector<std::string>> formats_of = {};  ///< what --format of a command may be
  std::vector<std::string> guides = {};  ///< names of the guides of the help; may be empty
  ConfigFacts facts = {};
};

/// Whether the run that resumes may have another value than the one before it.
enum class OnResume {
  kMustStay,   ///< it decides what comes out
  kMayChange,  ///< it decides how the run is carried out; with native reduction also the last bits
  kIfAlike     ///< between strategies that keep the same state
};

struct Option {
  std::string key;    ///< "train.lr": the section, a dot, the name within it
  std::string alias;  ///< a second, shorter flag: "init"; else empty
  std::string help;
  ValueKind kind = ValueKind::kText;
  std::string expected;              ///< description of valid values: "a number above 0"
  std::vector<std::string> choices;  ///< if not empty, the only texts that are values
  /// Not empty if the default stands for "not given": what happens then, in a few words.
  std::string if_not_given;
  std::string example;  ///< a value, where values have a grammar; as `assign` takes it
  OnResume on_resume = OnResume::kMustStay;
  std::string read_if;          ///< what has to be set for it to be read, in words; empty: nothing
  ConfigFact is_read;           ///< the same as a function; empty: always
  std::string counterpart;      ///< the key that stands for it where another entry of a catalog is chosen
  bool about_exchange = false;  ///< a config that gives it wants gradients to be sent
  bool sets_rate = false;       ///< the learning rate of a step follows from it
  bool most_used = false;       ///< shown on the short page of the help
  bool takes_numbers = false;   ///< text or texts that may be written as numbers in TOML
  bool may_repeat = false;      ///< texts that are no names: one may stand there twice
  bool takes_table = false;     ///< texts "a=b" that may be written as a table in TOML

  std::function<bool(std::string_view text)> accepts;
  std::function<void(Config& config, std::string_view text)> assign;  ///< Requires accepts(text).
  std::function<std::string(const Config& config)> text;              ///< The field, as `assign` takes it.
  std::string default_text;                                           ///< text() of a Config as it begins

  std::string_view section() const { return std::string_view(key).substr(0, key.find('.')); }
  std::string_view name() const { return std::string_view(key).substr(key.find('.') + 1); }
  bool is_default(const Config& config) const { return text(config) == default_text; }
  /// Whether the field holds a value, not the default that stands for "not given".
  bool has_value(const Config& config) const { return if_not_given.empty() || !is_default(config); }
};

/// A key and its value, as `Option::assign` takes it.
struct Setting {
  std::string key;
  std::string value;

  bool operator==(const Setting&) const = default;
};

/// Every option, section by section.
std::vector<Option> declare_options(const KnownNames& names);

/// Null if there is no such key.
const Option* find_option(std::span<const Option> options, std::string_view key);

/// An option that two configs give different values.
struct Difference {
  const Option& option;
  std::string before;
  std::string now;
};
std::vector<Difference> find_differences(const Config& before, const Config& now,
                                         std::span<const Option> options);

/// "expected a number above 0, found -1"; with a near choice: "; did you mean 'adam'?". `text`: the value as
/// `assign` would take it; `found`: the same in the words of the error.
std::string describe_refusal(const Option& option, std::string_view text, std::string_view found);

/// A name that a list has twice; "" if there is none, or where texts may repeat.
std::string repeated_name(const Option& option, std::string_view text);

/// Words of other programs for keys.
std::span<const Synonym> key_synonyms();

/// The hint for a word of other programs, "Lockstep calls it 'train.lr'": with "train.learning_rate" or
/// "learning-rate". A word with a section stands for itself in that section only. "" if nobody says so.
std::string describe_other_word(std::string_view wanted, std::span<const Option> options,
                                std::string_view prefix = "");

/// The key that was probably meant: the same name in another section, else the nearest one, else "".
std::string nearest_key(std::string_view wanted, std::span<const Option> options);

/// A hint for an unknown key: "did you mean 'train.lr'?", or for a word of other programs "Lockstep calls it
/// 'train.lr'"; "" if there is nothing to suggest. `prefix`: "--" where the key is a flag.
std::string suggest_key(std::string_view wanted, std::span<const Option> options,
                        std::string_view prefix = "");

// Rules over several options: what one option's own check cannot see. Nothing that was asked for is dropped
// silently.

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

/// `choices`: the catalogs in use. Errors: ConfigError if not exactly one of the models, of the lengths of
/// the run, or of the two batch sizes is given; or if a given key has no effect.
void check_config(const Config& config, std::span<const Option> options, std::span<const Choice> choices);

}  // namespace lockstep
