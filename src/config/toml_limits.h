// The TOML library parses and destroys nested tables by recursion, so that a deep text ends the stack.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Errors: ConfigError where a key has too many parts (a.b.c has three) or brackets are nested too deep: file
/// and line, what was found, the limit. Text that is no TOML passes: the parser refuses it.
void check_toml_limits(std::string_view text, const std::string& file);

}  // namespace lockstep
