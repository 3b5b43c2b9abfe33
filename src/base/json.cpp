#include "lockstep/base/json.h"

template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace lockstep {
namespace {

// The deepest nesting of brackets outside strings, and the byte of the bracket that reaches it. A string that
// is never closed ends the text: the parser refuses it.
struct Depth {
  Index depth = 0;
  std::size_t byte = 0;
};

Depth depth_of(std::string_view text) {
  Depth deepest;
  Index depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest.depth) deepest = {depth, i};
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

void check_json_limits(std::string_view text) {
  const auto bytes = std::ssize(text);
  if (bytes > kMaxJsonBytes) {
    throw DataError("its JSON has {} bytes, expected at most {}", with_commas(bytes),
                    with_commas(kMaxJsonBytes));
  }
  const Depth deepest = depth_of(text);
  if (deepest.depth > kMaxJsonDepth) {
    throw DataError("its JSON is nested {} deep (at byte {}), expected at most {}",
                    with_commas(deepest.depth), with_commas(static_cast<Index>(deepest.byte) + 1),
                    kMaxJsonDepth);
  }
}

template <class Json>
Json parse_json(std::string_view text) {
  constexpr std::size_t kMaxReasonBytes = 300;
  check_json_limits(text);
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {  // also out_of_range, of a number such as 1e999
    throw DataError("it is no JSON: {}", excerpt(error.what(), kMaxReasonBytes));
  }
}

template nlohmann::json parse_json<nlohmann::json>(std::string_view text);
template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(std::string_view text);

}  // namespace lockstep
