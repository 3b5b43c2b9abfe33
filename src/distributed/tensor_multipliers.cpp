#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/model.h"
#include "lockstep/optim/options.h"

namespace lockstep {
namespace {

constexpr std::string_view kLrKey = "train.lr_multiplier";
constexpr std::string_view kDecayKey = "train.weight_decay_multiplier";
constexpr double kMaxFactor = 1e6;

struct Kind {
  std::string_view name;
  bool (*fits)(const Model&, const ParamInfo&);
};

std::string layer_of(const Model& model, const ParamInfo& param) {
  return model.op(param.layer).name();
}

constexpr std::array kKinds{
    Kind{"bias", [](const Model&, const ParamInfo& param) { return param.name.ends_with(".bias"); }},
    Kind{"norm", [](const Model& model,
                    const ParamInfo& param) { return layer_of(model, param).ends_with("_norm"); }},
    Kind{"embedding",
         [](const Model& model, const ParamInfo& param) { return layer_of(model, param) == "embedding"; }}};

// Whether * in the pattern can stand for texts that make it the name.
bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*') {
    return !name.empty() && pattern.front() == name.front() && matches(pattern.substr(1), name.substr(1));
  }
  pattern.remove_prefix(std::min(pattern.find_first_not_of('*'), pattern.size()));
  if (pattern.empty()) return true;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (matches(pattern, name.substr(i))) return true;
  }
  return false;
}

bool fits(std::string_view pattern, const Model& model, const ParamInfo& param) {
  for (const Kind& kind : kKinds) {
    if (kind.name == pattern) return kind.fits(model, param);
  }
  return matches(pattern, param.name);
}

struct Rule {
  std::string_view pattern;
  double factor = 1;
};

Rule parse_rule(std::string_view key, std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view number = trimmed(text.substr(colon == text.npos ? text.size() : colon + 1));
  const Rule rule{.pattern = trimmed(text.substr(0, colon)),
                  .factor = number_in<double>(number).value_or(-1)};
  if (rule.factor >= 0 && rule.factor <= kMaxFactor && !rule.pattern.empty()) return rule;
  throw ConfigError(
      "{} has {}: expected a pattern, a colon and a factor of 0 to 1e6, such as \"bias: 2\" or \"0.*: 0.1\"",
      key, in_quotes(text));
}

[[noreturn]] void throw_fits_nothing(std::string_view key, std::string_view pattern, const Model& model) {
  throw ConfigError(
      "{}: {} fits no tensor of the model, which has {}; name some of these, with * for any text, or a kind "
      "({})",
      key, in_quotes(pattern), listed(catalog_names(model.layout().params)),
      fmt::join(catalog_names(kKinds), ", "));
}

// The factor of each tensor; none where no rule fits it.
std::vector<std::optional<double>> factors(std::string_view key, const std::vector<std::string>& texts,
                                           const Model& model) {
  const std::vector<ParamInfo>& params = model.layout().params;
  std::vector<std::optional<double>> all(params.size());
  for (const std::string& text : texts) {
    const Rule rule = parse_rule(key, text);
    bool found = false;
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!fits(rule.pattern, model, params[i])) continue;
      all[i] = rule.factor;
      found = true;
    }
    if (!found) throw_fits_nothing(key, rule.pattern, model);
  }
  return all;
}

// "START times 2: 0.bias, 2.bias" for each factor, in the order in which tensors have them.
void describe(std::string_view start, const Model& model, const std::vector<std::optional<double>>& factors,
              std::vector<std::string>& lines) {
  std::vector<std::pair<double, std::vector<std::string>>> groups;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) continue;
    const auto same = [&](const auto& group) { return group.first == *factors[i]; };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(group, {*factors[i], {}});
    group->second.push_back(model.layout().params[i].name);
  }
  for (const auto& [factor, names] : groups) {
    lines.push_back(fmt::format("{} times {}: {}", start, factor, fmt::join(names, ", ")));
  }
}

}  // namespace

UpdateRules update_rules(const Model& model, const OptimizerOptions& options) {
  UpdateRules rules{
      .weight_decay = options.weight_decay, .clip_norm = options.clip_norm, .clip_value = options.clip_value};
  const std::vector<ParamInfo>& params = model.layout().params;
  const auto lr = factors(kLrKey, options.lr_multiplier, model);
  const auto decay = factors(kDecayKey, options.weight_decay_multiplier, model);
  for (std::size_t i = 0; i < params.size(); ++i) {
    rules.multipliers.push_back(
        {.lr = lr[i].value_or(1), .weight_decay = decay[i].value_or(params[i].decays ? 1 : 0)});
  }
  const auto frozen = [](const TensorMultipliers& tensor) { return tensor.lr == 0; };
  error_if(!params.empty() && std::ranges::all_of(rules.multipliers, frozen),
           "{} freezes every tensor of the model, so that nothing would be trained; "
           "leave out those that are to be trained, or give them a factor above 0",
           kLrKey);
  return rules;
}

std::vector<std::string> describe_multipliers(const Model& model, const OptimizerOptions& options) {
  std::vector<std::string> lines;
  describe("Learning rate", model, factors(kLrKey, options.lr_multiplier, model), lines);
  describe("Weight decay", model, factors(kDecayKey, options.weight_decay_multiplier, model), lines);
  for (std::string& line : lines) {
    if (line.starts_with("Learning rate times 0:")) line.replace(0, line.find(':'), "Frozen");
  }
  return lines;
}

}  // namespace lockstep
