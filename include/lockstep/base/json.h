// Numbers from JSON texts of others. The library converts any number to any type, and one that does not fit
// with an undefined result.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/types.h"

namespace lockstep {

/// Beyond Index it becomes a negative one. Errors: DataError where it is no whole number.
template <class Json>
Index whole_number(const Json& json) {
  constexpr std::size_t kMostShown = 40;
  if (!json.is_number_integer()) {
    throw DataError(fmt::format("{} where a whole number belongs", json.dump().substr(0, kMostShown)));
  }
  return json.template get<Index>();
}

/// Errors: DataError where one of them is none; the library's type_error if it is not an array.
template <class Json>
std::vector<Index> whole_numbers(const Json& json) {
  std::vector<Index> numbers;
  for (const Json& number : json.template get_ref<const typename Json::array_t&>()) {
    numbers.push_back(whole_number(number));
  }
  return numbers;
}

}  // namespace lockstep
