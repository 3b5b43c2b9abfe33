#include "lockstep/train/loop/trace_request.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"

namespace lockstep {
namespace {

constexpr Index kMaxSteps = 1000;

[[noreturn]] void refuse(std::string_view key, std::string_view text, const std::string& what) {
  throw ConfigError(
      fmt::format("{} = {}: {}; write it as 'first 20, last 20, slowest 20 steps', or some of these parts",
                  key, in_quotes(text), what));
}

}  // namespace

TraceRequest parse_trace(std::string_view key, std::string_view text) {
  TraceRequest request;
  if (text.empty()) return request;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    std::string name;
    std::string number;
    std::string unit;
    std::string rest;
    words >> name >> number >> unit >> rest;
    Index* const steps = name == "first"     ? &request.first
                         : name == "last"    ? &request.last
                         : name == "slowest" ? &request.slowest
                                             : nullptr;
    if (steps == nullptr)
      refuse(key, text, fmt::format("{} is none of first, last and slowest", in_quotes(name)));
    if (*steps != 0) refuse(key, text, fmt::format("{} is there twice", in_quotes(name)));
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), *steps);
    const bool whole = error == std::errc() && end == number.data() + number.size();
    if (!whole || *steps < 1 || *steps > kMaxSteps) {
      refuse(key, text, fmt::format("{} is no number of steps from 1 to {}", in_quotes(number), kMaxSteps));
    }
    if ((!unit.empty() && unit != "steps" && unit != "step") || !rest.empty()) {
      refuse(key, text, fmt::format("{} is more than a word and a number", in_quotes(part)));
    }
  }
  return request;
}

}  // namespace lockstep
