// Texts of the program about itself: help, configs/REFERENCE.md, man page, completions. All are made from the
// declared options and the catalog of commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/config/commands.h"
#include "lockstep/config/option.h"

namespace lockstep {

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

/// configs/REFERENCE.md: a table for each section.
std::string reference_markdown(std::span<const Option> options);

/// trainer.1, for man (troff with the macros of man(7)).
std::string man_page(std::span<const Option> options);

/// The script that completes the command line of trainer: commands, flags, keys and values. `names` are those
/// that the options were declared with.
std::string bash_completion(std::span<const Option> options, const KnownNames& names);
std::string zsh_completion(std::span<const Option> options, const KnownNames& names);

/// A form in which `trainer reference --format NAME` writes the options.
struct ReferenceEntry {
  std::string name;
  std::string (*write)(std::span<const Option> options, const KnownNames& names);
};

/// The first is the default.
std::span<const ReferenceEntry> reference_catalog();

}  // namespace lockstep
