// The resolved config written as TOML.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/config/option.h"

namespace lockstep {

/// Every option with its value, section by section; what is not given, and the keys in `without_effect`, as
/// comments. Read again it gives the same Config.
std::string to_toml(const Config& config, const std::set<std::string>& without_effect = {});

/// Equal for equal configs only: the hash of to_toml(config).
std::uint64_t config_hash(const Config& config);

/// The option's value as TOML: "text" in quotes, [0.1, 0.2] in brackets.
std::string toml_value(const Option& option);
/// Another value, which is written as `assign` takes it.
std::string toml_value(const Option& option, const std::string& text);

}  // namespace lockstep
