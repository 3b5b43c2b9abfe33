#include "lockstep/config/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

void check_exactly_one(const Alternatives& alternatives, const std::set<std::string>& given) {
  std::vector<std::string> found;
  for (const std::string& key : alternatives.keys) {
    if (given.contains(key)) found.push_back(key);
  }
  if (found.size() == 1) return;
  throw ConfigError(fmt::format(
      "give exactly one of {} ({}); {}", fmt::join(alternatives.keys, ", "), alternatives.meaning,
      found.empty() ? "none of them is given" : fmt::format("found {}", fmt::join(found, " and "))));
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

// Requires that it has none.
std::string describe_no_effect(const Option& option, std::span<const Choice> choices) {
  if (const Choice* idle = find_idle_choice(option.key, choices)) return describe_no_effect(option, *idle);
  return fmt::format("{} has no effect without {}; remove it, or give that too", option.key, option.read_if);
}

}  // namespace

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

void check_config(const Config& config, const std::set<std::string>& given, std::span<const Option> options,
                  std::span<const Choice> choices) {
  for (const Alternatives& alternatives : alternative_keys()) check_exactly_one(alternatives, given);
  for (const Option& option : options) {
    if (given.contains(option.key) && !has_effect(config, option, choices)) {
      throw ConfigError(describe_no_effect(option, choices));
    }
  }
}

}  // namespace lockstep
