#include "lockstep/train/storage/checkpoint/interval.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"

namespace lockstep {
namespace {

constexpr std::array kClockUnits{std::pair{std::string_view("second"), 1.0},
                                 std::pair{std::string_view("minute"), 60.0},
                                 std::pair{std::string_view("hour"), 3600.0}};

// One in a unit of training, above 0; nothing if the text is none.
std::optional<Duration> training_time(std::string_view key, std::string_view text) {
  try {
    const Duration duration = parse_duration(key, text);
    if (duration.value > 0) return duration;
  } catch (const ConfigError&) {
    // The caller says all that it can be.
  }
  return std::nullopt;
}

}  // namespace

bool Interval::is_due(const Progress& before, const Progress& after) const {
  if (!training) return false;
  const auto passed = [&](const Progress& at) {
    return std::floor(training->measure(at) / training->value + 1e-9);
  };
  return passed(after) > passed(before);
}

Interval parse_interval(std::string_view key, std::string_view text) {
  if (text == "never") return {};
  if (const std::optional<double> seconds = clock_seconds(text)) return {.training = {}, .seconds = seconds};
  if (const std::optional<Duration> duration = training_time(key, text)) return {duration, {}};
  throw ConfigError(
      fmt::format("{} is {}: expected \"never\", or a number above 0 with its unit, such as \"500 steps\", "
                  "\"2000000 samples\", \"1 epoch\", \"10 minutes\"",
                  key, in_quotes(text)));
}

Interval parse_training_interval(std::string_view key, std::string_view text) {
  if (text == "never") return {};
  if (const std::optional<Duration> duration = training_time(key, text)) return {duration, {}};
  throw ConfigError(
      fmt::format("{} is {}: expected \"never\", or a number above 0 with its unit, steps, samples "
                  "or epochs (not a time by the clock, which would differ from run to run), such as "
                  "\"500 steps\" or \"1 epoch\"",
                  key, in_quotes(text)));
}

std::optional<double> clock_seconds(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (const auto& [name, seconds] : kClockUnits) {
    if (unit == name) return number * seconds;
  }
  return std::nullopt;
}

}  // namespace lockstep
