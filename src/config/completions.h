// Words for the scripts of shells.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/commands.h"

namespace lockstep {

/// In single quotes, as bash and zsh read a word: 'it'\''s'.
std::string shell_quoted(std::string_view word);
/// Several of them, with spaces between.
std::string shell_quoted(std::span<const std::string> words);

/// Flags that every command takes; none of them has a value.
std::vector<std::string> flags_of_all_commands();

/// The values of --format for a command; none if it has no such flag.
std::vector<std::string> formats_of(const CommandEntry& command, const KnownNames& names);

}  // namespace lockstep
