#include "sweep_flags.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/config/trials.h"

namespace lockstep {

Index parse_count(const FrontEnd& front, std::string_view flag, Range allowed, Index otherwise) {
  const std::optional<std::string> text = front.value(flag);
  if (!text) return otherwise;
  const Index number = ValueType<Index>::parse(*text).value_or(allowed.begin - 1);
  if (allowed.begin <= number && number < allowed.end) return number;
  throw ConfigError(fmt::format("--{}: expected a whole number from {} to {}, found {}", flag, allowed.begin,
                                allowed.end - 1, in_quotes(*text)));
}

namespace {

// "2/8": the second of eight parts.
void parse_part(const FrontEnd& front, SweepRequest& request) {
  const std::string text = front.value("part").value_or("1/1");
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    request.part = ValueType<Index>::parse(text.substr(0, slash)).value_or(0);
    request.parts = ValueType<Index>::parse(text.substr(slash + 1)).value_or(0);
  }
  if (slash != std::string::npos && 1 <= request.part && request.part <= request.parts &&
      request.parts <= kMaxTrials) {
    return;
  }
  throw ConfigError(
      fmt::format("--part: expected K/N with K from 1 to N, such as 1/8, found {}", in_quotes(text)));
}

void parse_trials(const FrontEnd& front, SweepRequest& request) {
  request.grids = front.values("grid");
  request.randoms = front.values("random");
  if (request.grids.empty() && request.randoms.empty()) {
    throw ConfigError(
        "--grid or --random is missing: say which keys vary, such as --grid train.lr=0.01,0.1, or --random "
        "\"train.lr=log(1e-4,1e-1)\" --trials 20");
  }
  if (!request.randoms.empty() && !front.value("trials")) {
    throw ConfigError("--trials is missing: --random needs the number of draws, such as --trials 20");
  }
  if (request.randoms.empty() && front.value("trials")) {
    throw ConfigError("--trials is the number of draws of --random; the trials of a --grid are its product");
  }
  request.draws = parse_count(front, "trials", {1, kMaxTrials + 1}, 0);
  request.halving = parse_count(front, "halving", {2, 101}, 0);
  parse_part(front, request);
  if (request.halving > 0 && request.parts > 1) {
    throw ConfigError(
        "--halving compares all trials with each other, which --part does not have: leave out one");
  }
}

// At most one flag says how records become folds.
void parse_folds(const FrontEnd& front, SweepRequest& request) {
  if (!front.value("folds")) throw ConfigError("--folds is missing: say how many, such as --folds 5");
  request.folds.folds = parse_count(front, "folds", {2, kMaxFolds + 1}, 0);
  request.refit = front.value("refit").has_value();
  std::string found;
  for (const auto& [flag, by] : {std::pair{"stratified", "class"}, std::pair{"group", "group"},
                                 std::pair{"time", "time"}, std::pair{"fold-column", "column"}}) {
    const std::optional<std::string> value = front.value(flag);
    if (!value) continue;
    if (!found.empty()) throw ConfigError(fmt::format("--{} and --{}: give one of them", found, flag));
    found = flag;
    request.folds.by = by;
    if (request.folds.reads_column()) request.folds.column = *value;
  }
}

}  // namespace

SweepRequest parse_sweep(const FrontEnd& front, CommandLine::Command command) {
  SweepRequest request;
  const bool sweeps = command == CommandLine::Command::kSweep;
  if (!sweeps && command != CommandLine::Command::kCrossValidate) return request;
  constexpr Index kMaxRanks = Index{1} << 20;
  request.ranks_per_trial = parse_count(front, "ranks-per-trial", {1, kMaxRanks + 1}, 1);
  if (sweeps) {
    parse_trials(front, request);
  } else {
    parse_folds(front, request);
  }
  return request;
}

}  // namespace lockstep
