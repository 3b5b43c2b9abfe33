#include "describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/config/toml.h"
#include "option_list.h"

namespace lockstep {

std::string describe(const Option& option) {
  const std::string choices =
      option.choices.empty() ? "" : fmt::format("{}; ", fmt::join(option.choices, " | "));
  const std::string fallback = option.has_value() ? fmt::format("default {}", toml_value(option))
                                                  : fmt::format("if not given: {}", option.if_not_given);
  return fmt::format("{} ({}{})", option.help, choices, fallback);
}

std::vector<std::string> completions(const Option& option) {
  if (option.kind == ValueKind::kBoolean) return {"true", "false"};
  return option.choices;
}

std::string section_title(std::string_view section) {
  return option_text(section).get("help");
}

}  // namespace lockstep
