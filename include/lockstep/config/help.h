// What the program says about itself: the help, and configs/REFERENCE.md. All from the declared options.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/config/option.h"

namespace lockstep {

/// `trainer --help`: commands, flags and the most used options, on one screen.
std::string short_help(std::span<const Option> options);

/// `trainer --help-all`: every option, section by section.
std::string full_help(std::span<const Option> options);

/// `trainer --version`. `build_facts`: one line each, such as "MPI: Open MPI 4.1.4".
std::string version_text(std::span<const std::string> build_facts);

/// configs/REFERENCE.md: a table for each section.
std::string reference_markdown(std::span<const Option> options);

}  // namespace lockstep
