#include "lockstep/train/loop/run_control.h"
#include "lockstep/base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/checkpoint.h"

namespace lockstep {
namespace {

constexpr double kLookSeconds = 0.1;
constexpr double kMaxLooks = 1e6;

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

RunControl::RunControl(Communicator& comm, const RunControlOptions& options)
    : comm_(comm), options_(options) {}

bool RunControl::look(std::optional<std::uint64_t> checksum) {
  if (checksum) return agree(*checksum);
  if (stops() || checkpoint_due_) return true;
  ++looks_skipped_;
  return looks_skipped_ > looks_to_skip_ && agree();
}

// Rank 0 decides how many looks make the time between two agreements. Checksums are sent as halves, whose
// sums stay below 2^63.
bool RunControl::agree(std::uint64_t checksum) {
  has_wish_ = false;
  const bool first = comm_.rank() == 0;
  const std::string mine = wish();
  const double seconds = std::max(since_look_.lap(), 1e-9);
  const double looks = static_cast<double>(std::max<Index>(looks_skipped_, 1)) * kLookSeconds / seconds;
  constexpr std::uint64_t kHalf = 0xffffffff;
  std::array<Index, 5> sums{mine.empty() ? 0 : 1, first && clock_wants_checkpoint() ? 1 : 0,
                            first ? static_cast<Index>(std::min(looks, kMaxLooks)) : 0,
                            static_cast<Index>(checksum & kHalf), static_cast<Index>(checksum >> 32U)};
  comm_.all_reduce_sum(as_buffer(std::span(sums)));
  checksums_agree_ = static_cast<std::uint64_t>(sums[3]) + (static_cast<std::uint64_t>(sums[4]) << 32U) == 0;
  // Steps may become slower at once, but not faster.
  looks_to_skip_ = std::min(sums[2], 2 * looks_to_skip_ + 1);
  looks_skipped_ = 0;
  checkpoint_due_ = sums[1] > 0;  // the clock says so until one is taken
  if (sums[0] > 0 && !stops()) {
    const std::vector<std::string> reasons = gather_texts(comm_, mine);
    const auto rank = std::ranges::find_if(reasons, [](const std::string& text) { return !text.empty(); });
    reason_ = fmt::format("{}{}", *rank,
                          sums[0] == comm_.size() || comm_.size() == 1
                              ? ""
                              : fmt::format(" on rank {}", rank - reasons.begin()));
  }
  return stops() || checkpoint_due_;
}

bool RunControl::has_wish() {
  if (has_wish_ || since_wish_.seconds() < kLookSeconds) return has_wish_;
  since_wish_.lap();
  has_wish_ = !wish().empty() || (comm_.rank() == 0 && clock_wants_checkpoint());
  return has_wish_;
}

std::string RunControl::wish() const {
  if (const std::string signal = stop_signal(); !signal.empty()) return signal;
  if (comm_.rank() != 0) return "";
  std::vector<std::filesystem::path> files = options_.further_stop_files;
  if (!options_.stop_file.empty()) files.push_back(options_.stop_file);
  for (const std::filesystem::path& file : files) {
    if (is_there(file)) return fmt::format("the file '{}'", file.string());
  }
  const double checkpoint = options_.last_checkpoint ? options_.last_checkpoint() : 0;
  const double reserve = kReserveSeconds + 2 * checkpoint;
  if (options_.seconds_left && since_start_.seconds() + reserve > *options_.seconds_left) {
    return fmt::format("the time limit ({:.0f} s are kept in reserve)", reserve);
  }
  return "";
}

void RunControl::checkpoint_taken() {
  checkpoint_due_ = false;
  since_checkpoint_.lap();
}

double parse_time_limit(std::string_view key, std::string_view text) {
  if (same_but_for_case(text, "UNLIMITED") || same_but_for_case(text, "INFINITE")) return kUnlimited;
  std::optional<double> seconds = clock_seconds(text);
  if (!seconds) {
    seconds = slurm_seconds(text);
    if (seconds == 0) seconds = kUnlimited;
  }
  if (seconds && *seconds > kReserveSeconds) return *seconds;
  if (seconds) {
    throw ConfigError(
        "{} is {}, of which {:.0f} s are kept to save the run and to end in time: each start would make one "
        "step; expected a longer time",
        key, in_quotes(text), kReserveSeconds);
  }
  throw ConfigError(
      "{} is {}: expected a number above 0 with its unit, such as \"50 minutes\", \"30 seconds\", \"2 "
      "hours\"; or a time as Slurm writes it, such as \"90\" (minutes), \"90:00\" (minutes and seconds), "
      "\"12:00:00\", \"1-12:00:00\" (days first), \"UNLIMITED\"",
      key, in_quotes(text));
}

TimeLeft job_time_left(std::string_view end_time, double now) {
  const double end = number_in<double>(end_time).value_or(0);
  std::string problem;
  if (!(end >= kFirstEnd)) {
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
