// Texts of the program about itself: help, configs/REFERENCE.md, man page, completions. All are made from the
// declared options and the catalog of commands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/command_line.h"

namespace lockstep {

struct ExitCode {
  std::string code;
  std::string word;  ///< "config"
  std::string help;
};

std::vector<ExitCode> exit_codes();

/// Meaning of the option, its choices and its default, in one line.
std::string describe(const Option& option);

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

/// `trainer --help`: commands, flags and the most used options, on one screen.
std::string short_help(std::span<const Option> options);

/// Topics of `trainer help` other than keys: commands, guides and sections.
std::vector<std::string> help_topics(std::span<const Option> options, const KnownNames& names);

/// `trainer COMMAND --help`: its usage, an example, its flags, and where to read on.
std::string command_page(const CommandEntry& command, const KnownNames& names);

/// `trainer help KEY`: what a value may be, the default, and what it means.
std::string option_page(const Option& option);

/// The options of one section; "" if there is no such section.
std::string section_help(std::span<const Option> options, std::string_view section);

/// `trainer --help-all`: every option, section by section.
std::string full_help(std::span<const Option> options);

/// A form in which `trainer reference --format NAME` writes the options, which were declared with `names`.
struct ReferenceEntry {
  std::string name;
  std::string (*write)(std::span<const Option> options, const KnownNames& names);
};

/// The first is the default.
std::span<const ReferenceEntry> reference_catalog();

}  // namespace lockstep
