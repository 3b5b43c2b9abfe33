// JSON texts of others: read with limits, and numbers from them. The library parses and destroys values by
// recursion, so that a deep text ends the stack; and it converts any number to any type, one that does not
// fit with an undefined result.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"

// The writers are compiled once, in src/base/json.cpp. The classes as a whole are not: what no file calls,
// such as their readers of CBOR and BSON, takes longer to compile than the few members that files do call.
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace lockstep {

inline constexpr Index kMaxJsonDepth = 100;
inline constexpr Index kMaxJsonBytes = Index{1} << 30;

/// Errors: DataError where the text is larger or nested deeper than the limits above: the byte, the depth
/// found, the limit.
void check_json_limits(std::string_view text);

/// Errors: DataError, without the name of the file, as check_json_limits has them and where it is no JSON.
template <class Json>
Json parse_json(std::string_view text);

/// The result of `read`, which gets the JSON of such a text. Errors: DataError as above, and where the
/// library finds a value missing or of another type.
template <class Json = nlohmann::ordered_json, class Read>
auto read_json(std::string_view text, const Read& read) {
  try {
    return read(parse_json<Json>(text));
  } catch (const typename Json::exception& error) {
    throw DataError(excerpt(error.what()));
  }
}

/// For a file that people may read: indented, with an end of line. Bytes that are no UTF-8, as texts of users
/// may have them, are replaced.
template <class Json>
std::string indented(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Null for what is not finite, which JSON has no word for.
inline nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

/// Beyond Index it becomes a negative one. Errors: DataError where it is no whole number.
template <class Json>
Index whole_number(const Json& json) {
  if (!json.is_number_integer()) {
    throw DataError("{} where a whole number belongs", excerpt(json.dump()));
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
