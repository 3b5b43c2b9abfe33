// The page of `trainer report` is made of texts around its numbers (see scripts/cmake/report_page.cmake),
// which stand in JSON as shown_json() has them.
#pragma once

#include <cstddef>
#include <string_view>

#include "lockstep/base/json.h"

namespace lockstep {

struct PageParts {
  std::string_view before;  ///< HTML that stands before the numbers
  std::string_view after;   ///< and after them: Chart.js and the script
};

const PageParts& page_parts();

inline constexpr std::size_t kMaxNameBytes = 200;

/// A copy in which each text is an excerpt, and each number null where it is not finite, and without a point
/// where it is whole.
nlohmann::ordered_json shown_json(const nlohmann::ordered_json& json, std::size_t max_bytes = kMaxNameBytes);

/// Takes from `json` the parts of a form, as shown_json() has them. In a form "" is a text, 0 a number, null
/// a number or null, true anything, and a list has elements as its first. A name with ? may be missing, which
/// leaves a list empty, if it is not one of numbers. The lists of numbers of an object are equally long, but
/// for names with +. Errors: DataError, Json::exception.
nlohmann::ordered_json read_as(const nlohmann::ordered_json& form, const nlohmann::ordered_json& json);

}  // namespace lockstep
