// The guides of configs/guides, as they were when the program was built.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct Guide {
  std::string_view name;  ///< "tables"
  std::string_view text;  ///< Markdown
};

std::span<const Guide> guides();

}  // namespace lockstep
