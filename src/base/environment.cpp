#include "lockstep/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::size_t kMaxShownBytes = 500;
constexpr Index kMaxNumber = 1'000'000'000;

}  // namespace

std::optional<std::string> environment_text(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view whole = value;
  std::string text(whole.substr(0, kMaxShownBytes));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  if (whole.size() > kMaxShownBytes) text += "...";
  return text;
}

std::optional<Index> environment_number(const char* name) {
  const std::optional<std::string> text = environment_text(name);
  if (!text) return std::nullopt;
  Index number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number > kMaxNumber) return std::nullopt;
  return number;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace lockstep
