// The texts that the page of `trainer report` is made of; see src/report/page/ and
// scripts/cmake/report_page.cmake.
#pragma once

#include <string_view>

namespace lockstep {

struct PageParts {
  std::string_view page;  ///< HTML with {{NAMES}} of what is put in
  std::string_view css;
  std::string_view script;   ///< draws the charts
  std::string_view licence;  ///< licence of Chart.js
  std::string_view charts;   ///< Chart.js itself; empty in a program that was built without it
};

const PageParts& page_parts();

}  // namespace lockstep
