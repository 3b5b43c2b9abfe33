// The flags of sweep and cv, and the grammar of --grid and --random.
//
// --grid KEY=VALUES: values stand between commas; a comma inside of parentheses or brackets belongs to its
// value. Where there is a '|' (outside of parentheses), it is the '|' that separates, so that a value may
// have commas; values of keys that take lists are always separated by '|'.
//
// --random KEY=DISTRIBUTION: uniform(a,b), log(a,b), int(a,b) or choice(a|b|c). Numbers are rounded to four
// digits: they are to be read, and the mathematical library of the system then has no say in them.
#include "lockstep/config/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kDistributions = "uniform(a,b), log(a,b), int(a,b) or choice(a|b|c)";

// Keys that a sweep sets or needs itself.
constexpr std::array kReserved{
    std::pair{"run.dir", "each trial has a directory below the sweep's run.dir"},
    std::pair{"run.resume", "a sweep goes on by itself"},
    std::pair{"checkpoint.dir", "each trial has its checkpoints in its own directory"},
    std::pair{"train.early_stopping_metric", "trials are compared by one measure"}};

// Splits at each `separator` outside of parentheses and brackets.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (text[i] != separator || depth > 0) continue;
    parts.emplace_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.emplace_back(trimmed(text.substr(begin)));
  return parts;
}

// "train.lr=0.01,0.1", taken apart.
struct Assignment {
  std::string flag;  // "--grid"
  const Option* option = nullptr;
  std::string right;
};

Assignment parse_assignment(std::string_view flag, const std::string& text, std::string_view example,
                            std::span<const Option> options) {
  const std::size_t equals = text.find('=');
  error_if(equals == std::string::npos || equals == 0, "{}: expected {}, found {}", flag, example,
           in_quotes(text));
  const std::string key(trimmed(std::string_view(text).substr(0, equals)));
  const Option* option = find_option(options, key);
  if (option == nullptr) {
    const std::string hint = suggest_key(key, options);
    throw ConfigError("{}: unknown key {}; {}", flag, in_quotes(key),
                      hint.empty() ? "'trainer --help-all' lists them" : hint);
  }
  for (const auto& [reserved, reason] : kReserved) {
    if (key == reserved) throw ConfigError("{}: {} cannot vary: {}", flag, key, reason);
  }
  return {std::string(flag), option, std::string(trimmed(std::string_view(text).substr(equals + 1)))};
}

void check_value(const Assignment& assignment, const std::string& value) {
  const Option& option = *assignment.option;
  if (!value.empty() && option.accepts(value)) return;
  throw ConfigError("{}: {}: {}", assignment.flag, option.key,
                    describe_refusal(option, value, in_quotes(value)));
}

std::vector<std::string> checked_values(const Assignment& assignment, std::vector<std::string> values) {
  for (auto value = values.begin(); value != values.end(); ++value) {
    check_value(assignment, *value);
    error_if(std::find(values.begin(), value, *value) != value, "{}: {} has {} twice", assignment.flag,
             assignment.option->key, in_quotes(*value));
  }
  return values;
}

std::vector<std::string> grid_values(const Assignment& assignment) {
  std::vector<std::string> values = split(assignment.right, '|');
  if (values.size() == 1 && !takes_a_list(*assignment.option)) values = split(assignment.right, ',');
  return checked_values(assignment, std::move(values));
}

enum class Kind { kUniform, kLog, kInt, kChoice };

struct Distribution {
  std::string key;
  Kind kind = Kind::kChoice;
  double low = 0;
  double high = 0;
  std::vector<std::string> choices = {};
};

[[noreturn]] void refuse_distribution(const Assignment& assignment, std::string_view why) {
  throw ConfigError("--random: {}: expected {}{}{}, found {}", assignment.option->key, kDistributions,
                    why.empty() ? "" : "; ", why, in_quotes(assignment.right));
}

Distribution parse_bounds(const Assignment& assignment, Kind kind, std::string_view inside) {
  const std::vector<std::string> ends = split(inside, ',');
  if (ends.size() != 2) refuse_distribution(assignment, "two numbers are needed");
  std::array<double, 2> bounds{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto whole = ValueType<Index>::parse(ends[i]);
    const auto number = kind == Kind::kInt
                            ? (whole ? std::optional(static_cast<double>(*whole)) : std::nullopt)
                            : ValueType<double>::parse(ends[i]);
    if (!number) refuse_distribution(assignment, kind == Kind::kInt ? "int takes whole numbers" : "");
    bounds[i] = *number;
  }
  if (!(bounds[0] < bounds[1])) refuse_distribution(assignment, "a must be below b");
  if (kind == Kind::kLog && bounds[0] <= 0) refuse_distribution(assignment, "log needs numbers above 0");
  if (kind != Kind::kInt && assignment.option->kind == ValueKind::kWholeNumber) {
    refuse_distribution(assignment, "the key takes whole numbers: int(a,b)");
  }
  return {.key = assignment.option->key, .kind = kind, .low = bounds[0], .high = bounds[1]};
}

Distribution parse_distribution(const Assignment& assignment) {
  const std::string_view text = assignment.right;
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) refuse_distribution(assignment, "");
  constexpr std::array<std::string_view, 4> kNames{"uniform", "log", "int", "choice"};  // as Kind
  const auto name = std::ranges::find(kNames, trimmed(text.substr(0, open)));
  if (name == kNames.end()) refuse_distribution(assignment, "");
  const auto kind = static_cast<Kind>(name - kNames.begin());
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (kind == Kind::kChoice) {
    return {.key = assignment.option->key, .choices = checked_values(assignment, split(inside, '|'))};
  }
  Distribution distribution = parse_bounds(assignment, kind, inside);
  for (const std::string& end : split(inside, ',')) check_value(assignment, end);
  return distribution;
}

std::string draw(const Distribution& distribution, Index number, std::uint64_t seed) {
  RandomStream random({.seed = seed,
                       .purpose = Purpose::kTrial,
                       .a = static_cast<std::uint64_t>(number),
                       .b = hash_text(distribution.key)});
  const double low = distribution.low;
  const double high = distribution.high;
  if (distribution.kind == Kind::kChoice) {
    return at(distribution.choices, random.below(std::ssize(distribution.choices)));
  }
  const double share = static_cast<double>(random.bits64() >> 11U) * 0x1p-53;
  if (distribution.kind == Kind::kInt) {
    return fmt::format("{}", static_cast<Index>(low + std::floor(share * (high - low + 1))));
  }
  const double value = distribution.kind == Kind::kUniform
                           ? low + share * (high - low)
                           : std::exp(std::log(low) + share * (std::log(high) - std::log(low)));
  // Rounded, it may lie a little outside.
  const double rounded = ValueType<double>::parse(fmt::format("{:.4g}", value)).value_or(value);
  return ValueType<double>::text(std::clamp(rounded, low, high));
}

struct GridKey {
  std::string key;
  std::vector<std::string> values;
};

void refuse_repeated(const std::vector<GridKey>& grid, const std::vector<Distribution>& random) {
  std::vector<std::string> keys;
  for (const GridKey& entry : grid) keys.push_back(entry.key);
  for (const Distribution& entry : random) keys.push_back(entry.key);
  std::ranges::sort(keys);
  const auto repeated = std::ranges::adjacent_find(keys);
  if (repeated == keys.end()) return;
  throw ConfigError("--grid, --random: {} is given twice; give all its values at once", *repeated);
}

// "2/8": the second of eight parts.
void parse_part(const CommandLine& line, SweepRequest& request) {
  const std::string text = line.value("part").value_or("1/1");
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    request.part = ValueType<Index>::parse(text.substr(0, slash)).value_or(0);
    request.parts = ValueType<Index>::parse(text.substr(slash + 1)).value_or(0);
  }
  if (slash != std::string::npos && 1 <= request.part && request.part <= request.parts &&
      request.parts <= kMaxTrials) {
    return;
  }
  throw ConfigError("--part: expected K/N with K from 1 to N, such as 1/8, found {}", in_quotes(text));
}

void parse_trials(const CommandLine& line, SweepRequest& request) {
  request.grids = line.values("grid");
  request.randoms = line.values("random");
  error_if(
      request.grids.empty() && request.randoms.empty(),
      "--grid or --random is missing: say which keys vary, such as --grid train.lr=0.01,0.1, or --random "
      "\"train.lr=log(1e-4,1e-1)\" --trials 20");
  error_if(!request.randoms.empty() && !line.value("trials"),
           "--trials is missing: --random needs the number of draws, such as --trials 20");
  error_if(request.randoms.empty() && line.value("trials"),
           "--trials is the number of draws of --random; the trials of a --grid are its product");
  request.draws = line.count("trials", {1, kMaxTrials + 1}, 0);
  request.halving = line.count("halving", {2, 101}, 0);
  parse_part(line, request);
  error_if(request.halving > 0 && request.parts > 1,
           "--halving compares all trials with each other, which --part does not have: leave out one");
}

// At most one flag says how records become folds.
void parse_folds(const CommandLine& line, SweepRequest& request) {
  if (!line.value("folds")) throw ConfigError("--folds is missing: say how many, such as --folds 5");
  request.folds.folds = line.count("folds", {2, kMaxFolds + 1}, 0);
  request.folds.fold = 1;
  request.refit = line.has("refit");
  std::string found;
  using By = ValidationPart::By;
  for (const auto& [flag, by] : {std::pair{"stratified", By::kClass}, std::pair{"group", By::kGroup},
                                 std::pair{"time", By::kTime}, std::pair{"fold-column", By::kColumn}}) {
    const std::optional<std::string> value = line.value(flag);
    if (!value) continue;
    if (!found.empty()) throw ConfigError("--{} and --{}: give one of them", found, flag);
    found = flag;
    request.folds.by = by;
    if (request.folds.reads_column()) request.folds.column = *value;
  }
}

}  // namespace

SweepRequest parse_sweep(const CommandLine& line) {
  SweepRequest request{.ranks_per_trial = line.count("ranks-per-trial", kAnyRanks, 1)};
  if (line.command == "sweep") {
    parse_trials(line, request);
  } else {
    parse_folds(line, request);
  }
  return request;
}

bool takes_a_list(const Option& option) {
  return option.kind == ValueKind::kTextList || option.kind == ValueKind::kNumberList;
}

std::vector<std::vector<Setting>> list_trials(const SweepRequest& request, std::span<const Option> options,
                                              std::uint64_t seed) {
  std::vector<GridKey> grid;
  for (const std::string& text : request.grids) {
    const Assignment found =
        parse_assignment("--grid", text, "KEY=VALUE,VALUE such as train.lr=0.01,0.1", options);
    grid.push_back({found.option->key, grid_values(found)});
  }
  std::vector<Distribution> random;
  for (const std::string& text : request.randoms) {
    random.push_back(parse_distribution(
        parse_assignment("--random", text, "KEY=DISTRIBUTION such as train.lr=log(1e-4,1e-1)", options)));
  }
  refuse_repeated(grid, random);
  Index count = random.empty() ? 1 : request.draws;
  for (const GridKey& entry : grid) count = std::min(count * std::ssize(entry.values), kMaxTrials + 1);
  error_if(count > kMaxTrials, "--grid, --random: expected at most {} trials, found more",
           with_commas(kMaxTrials));
  std::vector<std::vector<Setting>> trials;
  for (Index number = 0; number < count; ++number) {
    std::vector<Setting> settings;
    Index rest = number;
    for (auto entry = grid.rbegin(); entry != grid.rend(); ++entry) {
      settings.push_back({entry->key, at(entry->values, rest % std::ssize(entry->values))});
      rest /= std::ssize(entry->values);
    }
    std::ranges::reverse(settings);
    for (const Distribution& entry : random) settings.push_back({entry.key, draw(entry, rest, seed)});
    trials.push_back(std::move(settings));
  }
  return trials;
}

}  // namespace lockstep
