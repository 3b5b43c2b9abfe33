// The page of `trainer report` without its numbers; see scripts/cmake/report_page.cmake.
#pragma once

#include <string_view>

namespace lockstep {

struct PageParts {
  std::string_view before;  ///< HTML that stands before the numbers
  std::string_view after;   ///< and after them: Chart.js and the script
};

const PageParts& page_parts();

}  // namespace lockstep
