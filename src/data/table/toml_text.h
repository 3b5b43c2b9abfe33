// Texts as a config writes them.
#pragma once

#include <string>

namespace lockstep {

/// The text as a string of TOML, with its quotes.
std::string toml_text(const std::string& text);

}  // namespace lockstep
