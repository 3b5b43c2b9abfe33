// How help, man page and completions put an option into words, and go through the sections.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/commands.h"
#include "lockstep/config/option.h"

namespace lockstep {

/// Meaning of the option, its choices and its default, in one line.
std::string describe(const Option& option);

/// Values that a shell can complete: its choices, or true and false; else none.
std::vector<std::string> completions(const Option& option);

/// The values that a flag may have with a command; none if any text may be one.
std::vector<std::string> known_values(const OwnFlag& flag, const CommandEntry& command,
                                      const KnownNames& names);

/// "Saving the run while it goes on" for "checkpoint".
std::string section_title(std::string_view section);

/// The options of one section follow each other.
template <class Visit>
void for_each_section(std::span<const Option> options, const Visit& visit) {
  for (std::size_t begin = 0; begin < options.size();) {
    std::size_t end = begin;
    while (end < options.size() && options[end].section() == options[begin].section()) ++end;
    visit(options[begin].section(), options.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace lockstep
