// The config as TOML, read and written.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

/// The keys of a text and their values, which the options accept. `file`: its name in errors.
/// Errors: ConfigError with one line "FILE:LINE: ..." for each thing that is wrong, in the order of lines.
std::vector<Setting> read_toml(const std::string& text, const std::string& file,
                               std::span<const Option> options);

/// Every option with its value, section by section; what is not given, and the keys in `without_effect`, as
/// comments. Read again it gives the same Config.
std::string to_toml(const Config& config, std::span<const Option> options,
                    const std::set<std::string>& without_effect = {});

/// Equal for equal configs only: the hash of to_toml().
std::uint64_t config_hash(const Config& config, std::span<const Option> options);

/// A value of the option, as `assign` takes it, as TOML: "text" in quotes, [0.1, 0.2] in brackets.
std::string toml_value(const Option& option, const std::string& text);

}  // namespace lockstep
