#include "lockstep/config/option.h"

#include <fmt/format.h>

#include "lockstep/base/catalog.h"

namespace lockstep {

std::string describe_refusal(const Option& option, std::string_view text, std::string_view found) {
  const std::string nearest = nearest_name(text, option.choices);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("expected {}, found {}{}", option.expected, found, hint);
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

}  // namespace lockstep
