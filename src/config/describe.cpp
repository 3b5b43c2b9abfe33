#include "describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "lockstep/config/toml.h"

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

std::string_view section_title(std::string_view section) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTitles{{
      {"run", "The run and its output"},
      {"data", "Samples"},
      {"model", "The model"},
      {"train", "Loss, optimizer, learning rate, length and batch"},
      {"eval", "Evaluation"},
      {"checkpoint", "Saving the run while it goes on"},
      {"report", "What shows the run: a page, files for TensorBoard"},
      {"distribute", "How the work is shared"},
      {"comm", "Ranks that do not come, or do not agree"},
      {"debug", "Faults on purpose, for tests"},
  }};
  for (const auto& [name, title] : kTitles) {
    if (name == section) return title;
  }
  return "";
}

}  // namespace lockstep
