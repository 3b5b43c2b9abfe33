#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/config/toml.h"
#include "toml_reader.h"

namespace lockstep {
namespace {

std::string spaced_list(std::string_view texts) {
  std::string list;
  for (const char c : texts) list += c == ',' ? std::string(", ") : std::string(1, c);
  return list;
}

std::string quoted_list(std::string_view text) {
  std::vector<std::string> quoted;
  const auto texts = ValueType<std::vector<std::string>>::parse(text);
  for (const std::string& each : texts.value_or(std::vector<std::string>{})) {
    quoted.push_back(toml_string(each));
  }
  return fmt::format("{}", fmt::join(quoted, ", "));
}

std::string toml_line(const Option& option, bool has_effect) {
  if (!option.has_value()) return fmt::format("# {} is not given: {}\n", option.name(), option.if_not_given);
  const std::string line = fmt::format("{} = {}", option.name(), toml_value(option));
  return has_effect ? line + "\n" : fmt::format("# {}: without effect here\n", line);
}

std::string options_as_toml(std::span<const Option> options, const std::set<std::string>& without_effect) {
  std::string toml = "# Every option of the run, written by trainer; can be used as a config.\n";
  std::string_view section;
  for (const Option& option : options) {
    if (option.section() != section) {
      section = option.section();
      toml += fmt::format("\n[{}]\n", section);
    }
    toml += toml_line(option, !without_effect.contains(option.key));
  }
  return toml;
}

}  // namespace

std::string toml_value(const Option& option) {
  return toml_value(option, option.text());
}

std::string toml_value(const Option& option, const std::string& text) {
  const bool word = option.kind == ValueKind::kCountOrAuto && !ValueType<Index>::parse(text);
  if (option.kind == ValueKind::kText || word) return toml_string(text);
  if (option.kind == ValueKind::kTextList) return fmt::format("[{}]", quoted_list(text));
  if (option.kind == ValueKind::kNumberList) return fmt::format("[{}]", spaced_list(text));
  return text;
}

std::string TomlFormat::to_config(const CLI::App*, bool, bool, std::string) const {
  return options_as_toml(options_, {});
}

std::string to_toml(const Config& config, const std::set<std::string>& without_effect) {
  Config shown;
  const std::vector<Option> options = declare_options(shown, {});  // notes the defaults, for comparison
  shown = config;
  return options_as_toml(options, without_effect);
}

std::uint64_t config_hash(const Config& config) {
  return hash_text(to_toml(config));
}

}  // namespace lockstep
