#include "lockstep/config/option.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/synonyms.h"
#include "lockstep/config/toml.h"

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

// Words for what no option stands for.
constexpr OtherWords kNoSuchThing{
    "device devices device_type gpu gpus num_gpus cuda use_cuda no_cuda use_gpu",
    "Lockstep trains on CPUs only: leave it out"};

}  // namespace

std::string describe_refusal(const Option& option, std::string_view text, std::string_view found) {
  const std::string hint = suggestion(unknown_part(option, text), option.choices);
  // Any text is accepted here, so what was found is no text: quotes are missing, and perhaps a unit.
  const bool has_example = option.expected == ValueType<std::string>::kNoun && !option.example.empty();
  const std::string example =
      has_example ? fmt::format(" such as {}", toml_value(option, option.example)) : std::string();
  return fmt::format("expected {}{}, found {}{}", option.expected, example, found, hint);
}

std::string describe_other_word(std::string_view wanted, std::span<const Option> options,
                                std::string_view prefix) {
  for (const std::string_view word : {wanted, wanted.substr(wanted.rfind('.') + 1)}) {
    for (const Option& option : options) {
      for (const OtherWords& other : option.synonyms) {
        if (!has_word(other.words, word)) continue;
        return other.hint.empty() ? fmt::format("Lockstep calls it '{}{}'", prefix, option.key)
                                  : std::string(other.hint);
      }
    }
    if (has_word(kNoSuchThing.words, word)) return std::string(kNoSuchThing.hint);
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

}  // namespace lockstep
