// Tables on the terminal.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace lockstep {

/// Lines whose columns are as wide as their widest cell, with two blanks between; no line ends with blanks.
/// The first `left` columns are aligned to the left, the others to the right. All rows have as many cells.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::size_t left = std::numeric_limits<std::size_t>::max());

}  // namespace lockstep
