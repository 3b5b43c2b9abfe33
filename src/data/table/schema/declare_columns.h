// Texts and lines as a config writes them.
#pragma once

#include <string>

namespace lockstep {

/// The text as a string of TOML, with its quotes.
std::string toml_text(const std::string& text);

/// The line that leaves a column out; "" for a name so long that the line would not be read.
std::string ignore_line(const std::string& column);

}  // namespace lockstep
