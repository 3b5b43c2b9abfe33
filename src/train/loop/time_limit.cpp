#include "lockstep/train/loop/time_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/train/loop/run_control.h"
#include "lockstep/train/storage/checkpoint/interval.h"

namespace lockstep {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr double kMinute = 60;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;

// No job of today ends outside of these: a number before is none of seconds since 1970, and one beyond may be
// in milliseconds.
constexpr double kFirstEnd = 1e9;
constexpr double kMaxAhead = 10 * 365 * kDay;

bool same_but_for_case(std::string_view text, std::string_view upper) {
  return std::ranges::equal(text, upper, [](unsigned char a, char b) { return std::toupper(a) == b; });
}

// The numbers of "1:30:00"; none if something else is between or around the colons.
std::optional<std::vector<double>> numbers_between_colons(std::string_view text) {
  constexpr std::size_t kMaxDigits = 9;
  std::vector<double> numbers;
  for (;;) {
    const std::size_t colon = text.find(':');
    const std::string_view digits = text.substr(0, colon);
    int number = 0;
    if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
    if (!std::ranges::all_of(digits, [](char c) { return '0' <= c && c <= '9'; })) return std::nullopt;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    numbers.push_back(number);
    if (colon == std::string_view::npos) return numbers;
    text.remove_prefix(colon + 1);
  }
}

// Seconds of a time in one of Slurm's notations: behind days hours come first, without days a single number
// or the first of two is minutes.
std::optional<double> slurm_seconds(std::string_view text) {
  double days = 0;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto before = numbers_between_colons(text.substr(0, dash));
    if (!before || before->size() != 1) return std::nullopt;
    days = before->front();
    text.remove_prefix(dash + 1);
  }
  auto numbers = numbers_between_colons(text);
  if (!numbers || numbers->size() > 3) return std::nullopt;
  if (!has_days && numbers->size() < 3) numbers->insert(numbers->begin(), 0);
  numbers->resize(3);
  return days * kDay + (*numbers)[0] * kHour + (*numbers)[1] * kMinute + (*numbers)[2];
}

std::string ago(double seconds) {
  return seconds < 2 * kDay ? human_seconds(seconds) : fmt::format("{:.0f} days", seconds / kDay);
}

}  // namespace

double parse_time_limit(std::string_view key, std::string_view text) {
  if (same_but_for_case(text, "UNLIMITED") || same_but_for_case(text, "INFINITE")) return kUnlimited;
  std::optional<double> seconds = clock_seconds(text);
  if (!seconds) {
    seconds = slurm_seconds(text);
    if (seconds == 0) seconds = kUnlimited;
  }
  if (seconds && *seconds > kReserveSeconds) return *seconds;
  if (seconds) {
    throw ConfigError(fmt::format(
        "{} is {}, of which {:.0f} s are kept to save the run and to end in time: each start would "
        "make one step; expected a longer time",
        key, in_quotes(text), kReserveSeconds));
  }
  throw ConfigError(fmt::format(
      "{} is {}: expected a number above 0 with its unit, such as \"50 minutes\", \"30 seconds\", \"2 "
      "hours\"; or a time as Slurm writes it, such as \"90\" (minutes), \"90:00\" (minutes and seconds), "
      "\"12:00:00\", \"1-12:00:00\" (days first), \"UNLIMITED\"",
      key, in_quotes(text)));
}

TimeLeft job_time_left(std::string_view end_time, double now) {
  double end = 0;
  const char* const stop = end_time.data() + end_time.size();
  const auto [parsed, error] = std::from_chars(end_time.data(), stop, end);
  std::string problem;
  if (error != std::errc() || parsed != stop || !(end >= kFirstEnd)) {
    problem = "which is no time in seconds since 1970";
  } else if (end <= now) {
    problem = fmt::format("a time that passed {} ago (of another job?)", ago(now - end));
  } else if (end - now <= kReserveSeconds) {
    problem = fmt::format("which is in {}: there is no time to save the run", human_seconds(end - now));
  } else if (end - now > kMaxAhead) {
    problem = "which is more than ten years away (is it in seconds since 1970?)";
  } else {
    return {.seconds = end - now, .warning = {}};
  }
  return {.seconds = {},
          .warning = fmt::format("SLURM_JOB_END_TIME is '{}', {}: the run has no time limit; set one with "
                                 "run.time_limit (such as \"50 minutes\"), or unset the variable",
                                 end_time, problem)};
}

}  // namespace lockstep
