#include "lockstep/config/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/config/toml.h"
#include "option_list.h"

namespace lockstep {

namespace {

// The part of a refused value that is no choice: of a list, its first such element.
std::string_view unknown_part(const Option& option, std::string_view text) {
  if (option.kind != ValueKind::kTextList) return text;
  while (true) {
    const std::string_view first = text.substr(0, text.find(','));
    const bool known = std::ranges::find(option.choices, first) != option.choices.end();
    if (!known || first.size() == text.size()) return first;
    text.remove_prefix(first.size() + 1);
  }
}

void check_exactly_one(const Alternatives& alternatives, const std::set<std::string>& given) {
  std::vector<std::string> found;
  for (const std::string& key : alternatives.keys) {
    if (given.contains(key)) found.push_back(key);
  }
  if (found.size() == 1) return;
  throw ConfigError(
      "give exactly one of {} ({}); {}", fmt::join(alternatives.keys, ", "), alternatives.meaning,
      found.empty() ? "none of them is given" : fmt::format("found {}", fmt::join(found, " and ")));
}

// A choice whose chosen entry leaves the key unread, while others would read it; null if there is none.
const Choice* find_idle_choice(const std::string& key, std::span<const Choice> choices) {
  const Choice* idle = nullptr;
  for (const Choice& choice : choices) {
    if (std::ranges::find(choice.keys, key) != choice.keys.end()) return nullptr;
    const auto& all = choice.all_keys;
    if (idle == nullptr && std::ranges::find(all, key) != all.end()) idle = &choice;
  }
  return idle;
}

std::string describe_no_effect(const Option& option, const Choice& choice) {
  const std::string kind = choice.chooser.substr(choice.chooser.find('.') + 1);
  std::string reads = choice.keys.empty() ? "which reads no keys of its own"
                                          : fmt::format("which reads {}", fmt::join(choice.keys, ", "));
  constexpr std::size_t kMaxListed = 8;
  const auto readers = choice.readers.find(option.key);
  if (choice.keys.size() > kMaxListed && readers != choice.readers.end()) {
    reads = fmt::format("but with {}", fmt::join(readers->second, ", "));
  }
  const bool has_counterpart = std::ranges::find(choice.keys, option.counterpart) != choice.keys.end();
  return fmt::format(
      "{} has no effect with {} {}, {}; {}remove it or change {}", option.key, kind, in_quotes(choice.chosen),
      reads, has_counterpart ? fmt::format("give {} instead, ", option.counterpart) : "", choice.chooser);
}

bool has_effect(const Config& config, const Option& option, std::span<const Choice> choices) {
  return find_idle_choice(option.key, choices) == nullptr && (!option.is_read || option.is_read(config));
}

}  // namespace

const TextEntry& option_text(std::string_view name) {
  static const std::vector<TextEntry> kTexts = embedded_entries("texts/options.txt");
  const auto found = std::ranges::find(kTexts, name, &TextEntry::name);
  if (found == kTexts.end()) throw std::logic_error(fmt::format("configs/texts/options.txt lacks {}", name));
  return *found;
}

void describe(Option& option, std::string key) {
  const TextEntry& text = option_text(key);
  option.key = std::move(key);
  option.help = text.get("help");
  option.expected = text.get("expected");
  option.if_not_given = text.get("not given");
  option.example = text.get("example");
  option.read_if = text.get("read with");
  option.alias = text.get("alias");
  option.counterpart = text.get("counterpart");
  const std::string of_section = option_text(option.section()).get("on resume");
  const std::string own = text.get("on resume");
  const std::string& rule = own.empty() ? of_section : own;
  option.on_resume = rule == "may change" ? OnResume::kMayChange
                     : rule == "if alike" ? OnResume::kIfAlike
                                          : OnResume::kMustStay;
  const std::vector<std::string> marks = text.get_words("marks");
  const auto has = [&marks](std::string_view mark) { return std::ranges::count(marks, mark) > 0; };
  option.most_used = has("most-used");
  option.about_exchange = has("exchange");
  option.sets_rate = has("rate");
  option.takes_numbers = has("numbers");
  option.takes_table = has("table");
  option.may_repeat = has("repeats");
}

const Option* find_option(std::span<const Option> options, std::string_view key) {
  const auto found = std::ranges::find(options, key, &Option::key);
  return found == options.end() ? nullptr : &*found;
}

std::vector<Difference> find_differences(const Config& before, const Config& now,
                                         std::span<const Option> options) {
  std::vector<Difference> differences;
  for (const Option& option : options) {
    std::string old_text = option.text(before);
    std::string new_text = option.text(now);
    if (old_text != new_text) differences.push_back({option, std::move(old_text), std::move(new_text)});
  }
  return differences;
}

std::string describe_refusal(const Option& option, std::string_view text, std::string_view found) {
  const std::string hint = suggestion(unknown_part(option, text), option.choices);
  // Any text is accepted here, so what was found is no text: quotes are missing, and perhaps a unit.
  const bool has_example = option.expected == ValueType<std::string>::kNoun && !option.example.empty();
  const std::string example =
      has_example ? fmt::format(" such as {}", toml_value(option, option.example)) : std::string();
  return fmt::format("expected {}{}, found {}{}", option.expected, example, found, hint);
}

std::string repeated_name(const Option& option, std::string_view text) {
  if (option.kind != ValueKind::kTextList || option.may_repeat) return "";
  const auto names = ValueType<std::vector<std::string>>::parse(text).value_or(std::vector<std::string>());
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) return name;
  }
  return "";
}

std::span<const Synonym> key_synonyms() {
  static const std::vector<Synonym> kSynonyms = embedded_synonyms("texts/options.txt");
  return kSynonyms;
}

std::string describe_other_word(std::string_view wanted, std::span<const Option> options,
                                std::string_view prefix) {
  std::vector<std::string> known{"-"};  // the name of the words that no key stands for
  for (const Option& option : options) known.push_back(option.key);
  for (const std::string_view word : {wanted, wanted.substr(wanted.rfind('.') + 1)}) {
    const Synonym* synonym = find_synonym(key_synonyms(), word, known);
    if (synonym != nullptr) return describe(*synonym, prefix);
  }
  return "";
}

std::string nearest_key(std::string_view wanted, std::span<const Option> options) {
  const std::string_view last = wanted.substr(wanted.rfind('.') + 1);
  std::vector<std::string> keys;
  std::vector<std::string> names;
  for (const Option& option : options) {
    if (option.name() == last) return option.key;
    keys.push_back(option.key);
    names.emplace_back(option.name());
  }
  const std::string nearest = nearest_name(wanted, keys);
  if (!nearest.empty()) return nearest;
  const std::string near_name = nearest_name(last, names);
  for (const Option& option : options) {
    if (option.name() == near_name) return option.key;
  }
  return "";
}

std::string suggest_key(std::string_view wanted, std::span<const Option> options, std::string_view prefix) {
  if (std::string hint = describe_other_word(wanted, options, prefix); !hint.empty()) return hint;
  const std::string nearest = nearest_key(wanted, options);
  return nearest.empty() ? "" : fmt::format("did you mean '{}{}'?", prefix, nearest);
}

std::span<const Alternatives> alternative_keys() {
  static const std::array<Alternatives, 3> kGroups{
      {{{"model.layers", "model.preset"}, "the layers of the model"},
       {{"train.global_batch", "train.per_replica_batch"},
        "samples per update, over all replicas or of each"},
       {{"train.epochs", "train.steps", "train.samples"}, "the length of the run"}}};
  return kGroups;
}

std::set<std::string> keys_without_effect(const Config& config, std::span<const Option> options,
                                          std::span<const Choice> choices) {
  std::set<std::string> keys;
  for (const Option& option : options) {
    if (!has_effect(config, option, choices)) keys.insert(option.key);
  }
  return keys;
}

void check_config(const Config& config, std::span<const Option> options, std::span<const Choice> choices) {
  for (const Alternatives& alternatives : alternative_keys()) check_exactly_one(alternatives, config.given);
  for (const Option& option : options) {
    if (!config.given.contains(option.key) || has_effect(config, option, choices)) continue;
    const Choice* const idle = find_idle_choice(option.key, choices);
    if (idle != nullptr) throw ConfigError(describe_no_effect(option, *idle));
    throw ConfigError("{} has no effect without {}; remove it, or give that too", option.key, option.read_if);
  }
}

}  // namespace lockstep
