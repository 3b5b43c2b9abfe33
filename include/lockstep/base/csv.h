// Texts as cells of CSV (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// In double quotes, with those in it doubled.
std::string csv_quoted(std::string_view text);
/// As it is, or in quotes where a comma, a quote or a line end makes that necessary.
std::string csv_cell(std::string_view text);

}  // namespace lockstep
