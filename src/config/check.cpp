#include "lockstep/config/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"

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

// The choices among names that no catalog holds.
std::vector<Choice> built_in_choices(const Config& config) {
  Choice init{"model.init", config.model.init, {}, {"model.init_std"}};
  if (init.chosen == "normal") init.keys = init.all_keys;
  Choice scaling{"train.lr_scaling", config.schedule.lr_scaling, {}, {"train.lr_reference_batch"}};
  if (scaling.chosen != "none") scaling.keys = scaling.all_keys;
  Choice start{"train.init", config.train.init, {}, {"train.init_partial"}};
  if (!start.chosen.empty()) start.keys = start.all_keys;
  Choice preset{"model.preset", config.model.preset, {}, {"model.outputs"}};
  if (!preset.chosen.empty()) preset.keys = preset.all_keys;
  const bool block = config.distribute.block_momentum > 0;
  Choice momentum{"distribute.block_momentum", block ? "on" : "", {}, {"distribute.block_nesterov"}};
  if (block) momentum.keys = momentum.all_keys;
  Choice bad{"train.on_nan", config.train.on_nan == OnNan::kSkip ? "skip" : "stop", {}, {"train.skip_limit"}};
  if (config.train.on_nan == OnNan::kSkip) bad.keys = bad.all_keys;
  return {init, scaling, start, preset, momentum, bad};
}

std::vector<Choice> every_choice(const Config& config, std::span<const Choice> choices) {
  std::vector<Choice> all = built_in_choices(config);
  all.insert(all.end(), choices.begin(), choices.end());
  return all;
}

// The key that is to some entries of a choice what `key` is to others; "" if `keys` do not hold it.
std::string counterpart(const std::string& key, std::span<const std::string> keys) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr auto kPairs = std::to_array<Pair>({{"data.label", "data.train_labels"},
                                                      {"data.train_labels", "data.label"},
                                                      {"data.validation_labels", "data.label"},
                                                      {"data.test_labels", "data.label"},
                                                      {"data.train", "data.synthetic_rows"},
                                                      {"data.validation", "data.synthetic_validation_rows"},
                                                      {"data.test", "data.synthetic_test_rows"}});
  for (const auto& [wanted, other] : kPairs) {
    if (wanted == key && std::ranges::find(keys, other) != keys.end()) return std::string(other);
  }
  return "";
}

std::string describe_no_effect(const std::string& key, const Choice& choice) {
  if (choice.chosen.empty()) {
    return fmt::format("{} has no effect without {}; remove it or give {}", key, choice.chooser,
                       choice.chooser);
  }
  const std::string kind = choice.chooser.substr(choice.chooser.find('.') + 1);
  std::string reads = choice.keys.empty() ? "which reads no keys of its own"
                                          : fmt::format("which reads {}", fmt::join(choice.keys, ", "));
  constexpr std::size_t kMaxListed = 8;
  const auto readers = choice.readers.find(key);
  if (choice.keys.size() > kMaxListed && readers != choice.readers.end()) {
    reads = fmt::format("but with {}", fmt::join(readers->second, ", "));
  }
  const std::string instead = counterpart(key, choice.keys);
  return fmt::format("{} has no effect with {} {}, {}; {}remove it or change {}", key, kind,
                     in_quotes(choice.chosen), reads,
                     instead.empty() ? "" : fmt::format("give {} instead, ", instead), choice.chooser);
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

std::set<std::string> keys_without_effect(const Config& config, std::span<const Choice> choices) {
  std::set<std::string> keys;
  const std::vector<Choice> all = every_choice(config, choices);
  for (const Choice& choice : all) keys.insert(choice.all_keys.begin(), choice.all_keys.end());
  for (const Choice& choice : all) {
    for (const std::string& key : choice.keys) keys.erase(key);
  }
  return keys;
}

void check_config(const Config& config, const std::set<std::string>& given, std::span<const Choice> choices) {
  for (const Alternatives& alternatives : alternative_keys()) check_exactly_one(alternatives, given);
  if (given.contains("train.per_replica_batch") && !given.contains("train.replicas")) {
    throw ConfigError(
        "train.per_replica_batch needs train.replicas: otherwise the global batch, and with it the run, "
        "would change "
        "with the number of ranks");
  }
  const std::set<std::string> idle = keys_without_effect(config, choices);
  for (const Choice& choice : every_choice(config, choices)) {
    for (const std::string& key : choice.all_keys) {
      if (idle.contains(key) && given.contains(key)) throw ConfigError(describe_no_effect(key, choice));
    }
  }
}

}  // namespace lockstep
