#include "command_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <sstream>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/config/trials.h"

namespace lockstep {
namespace {

constexpr Index kMaxRanks = Index{1} << 20;  // of all nodes together
constexpr Range kAnyRanks{1, kMaxRanks + 1};

// The whole number that a flag gives, in `allowed`; `otherwise` if it is not given.
Index parse_count(const FrontEnd& front, std::string_view flag, Range allowed, Index otherwise) {
  const std::optional<std::string> text = front.value(flag);
  if (!text) return otherwise;
  const Index number = ValueType<Index>::parse(*text).value_or(allowed.begin - 1);
  if (allowed.begin <= number && number < allowed.end) return number;
  throw ConfigError(fmt::format("--{}: expected a whole number from {} to {}, found {}", flag, allowed.begin,
                                allowed.end - 1, in_quotes(*text)));
}

struct Unit {
  std::string_view name;
  double size;
};

constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kBandwidths[] = {
    {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}, {"MB", 1e6}, {"GB", 1e9}};

// A number and one of the units behind it.
std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view wanted = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name == wanted) return number * unit.size;
  }
  return std::nullopt;
}

// A number about the link between nodes; 0 on one node, which has no link.
template <class Parse>
double parse_link(const FrontEnd& front, std::string_view flag, Index nodes, const std::string& expected,
                  const Parse& parse) {
  const std::optional<std::string> text = front.value(flag);
  if (!text && nodes == 1) return 0;
  if (!text) {
    throw ConfigError(fmt::format("--{} is missing: with several --nodes, expected {}", flag, expected));
  }
  const std::optional<double> value = parse(*text);
  if (!value) throw ConfigError(fmt::format("--{}: expected {}, found {}", flag, expected, in_quotes(*text)));
  return *value;
}

void refuse_without_nodes(const FrontEnd& front, std::string_view command) {
  for (const std::string_view flag : {"ranks-per-node", "cores-per-node", "latency", "bandwidth", "from"}) {
    if (front.value(flag) && command == "plan") {
      throw ConfigError(fmt::format("--{} of plan describes machines: add --nodes", flag));
    }
  }
}

void refuse_two(const PredictRequest& request) {
  if (request.top == 0 && !request.probabilities) return;
  if (request.top > 0 && request.probabilities) {
    throw ConfigError(
        "--proba writes the probabilities of all classes, --top those of a few: give one of them");
  }
  if (!request.threshold) return;
  throw ConfigError(
      fmt::format("--threshold decides which class is written, and {} writes no such class: give one of them",
                  request.top > 0 ? "--top" : "--proba"));
}

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
  request.folds.fold = 1;
  request.refit = front.value("refit").has_value();
  std::string found;
  using By = ValidationPart::By;
  for (const auto& [flag, by] : {std::pair{"stratified", By::kClass}, std::pair{"group", By::kGroup},
                                 std::pair{"time", By::kTime}, std::pair{"fold-column", By::kColumn}}) {
    const std::optional<std::string> value = front.value(flag);
    if (!value) continue;
    if (!found.empty()) throw ConfigError(fmt::format("--{} and --{}: give one of them", found, flag));
    found = flag;
    request.folds.by = by;
    if (request.folds.reads_column()) request.folds.column = *value;
  }
}

}  // namespace

std::vector<Index> parse_world_sizes(const FrontEnd& front) {
  const std::string text = front.value("np").value_or("1");
  std::vector<Index> sizes;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    sizes.push_back(ValueType<Index>::parse(item).value_or(0));
  }
  const bool fits = std::ranges::all_of(sizes, [](Index size) { return size >= 1 && size <= kMaxRanks; });
  if (sizes.empty() || !fits || text.ends_with(',')) {
    throw ConfigError(fmt::format("--np: expected numbers of ranks from 1 to {}, such as 1,2,4,8, found {}",
                                  kMaxRanks, in_quotes(text)));
  }
  return sizes;
}

PlannedNodes parse_planned_nodes(const FrontEnd& front, std::string_view command,
                                 const std::string& config_file) {
  if (!front.value("nodes")) {
    refuse_without_nodes(front, command);
    return {};
  }
  if (front.value("np")) throw ConfigError("--np and --nodes: give one of them");
  PlannedNodes planned;
  planned.nodes = parse_count(front, "nodes", kAnyRanks, 1);
  planned.ranks_per_node = parse_count(front, "ranks-per-node", kAnyRanks, 1);
  planned.cores = parse_count(front, "cores-per-node", kAnyRanks, 0);
  if (planned.ranks_per_node > kMaxRanks / planned.nodes) {
    throw ConfigError(fmt::format("--nodes {} --ranks-per-node {}: expected at most {} ranks in all",
                                  planned.nodes, planned.ranks_per_node, kMaxRanks));
  }
  planned.latency =
      parse_link(front, "latency", planned.nodes, "a time such as 500ns, 2us or 0.1ms", parse_seconds);
  planned.bandwidth = parse_link(front, "bandwidth", planned.nodes,
                                 "bits or bytes per second such as 25Gbit, 100Mbit or 3GB", parse_bandwidth);
  planned.bench = front.value("from").value_or("");
  if (planned.bench.empty()) {
    throw ConfigError(fmt::format(
        "--from is missing: how fast ranks compute is measured, not told; run 'mpirun -np 2 trainer bench "
        "--config {} --json bench.json' first and add --from bench.json",
        config_file));
  }
  return planned;
}

SweepRequest parse_sweep(const FrontEnd& front, std::string_view command) {
  SweepRequest request;
  if (command != "sweep" && command != "cv") return request;
  request.ranks_per_trial = parse_count(front, "ranks-per-trial", kAnyRanks, 1);
  if (command == "sweep") {
    parse_trials(front, request);
  } else {
    parse_folds(front, request);
  }
  return request;
}

PredictRequest parse_predict(const FrontEnd& front) {
  PredictRequest request{.keep = front.value("keep"), .probabilities = front.value("proba").has_value()};
  if (const std::optional<std::string> text = front.value("top")) {
    request.top = ValueType<Index>::parse(*text).value_or(0);
    if (request.top < 1) {
      throw ConfigError(
          fmt::format("--top: expected a number of classes, 1 or more, found {}", in_quotes(*text)));
    }
  }
  if (const std::optional<std::string> text = front.value("threshold")) {
    request.threshold = ValueType<double>::parse(*text);
    if (!request.threshold || *request.threshold < 0 || *request.threshold > 1) {
      throw ConfigError(
          fmt::format("--threshold: expected a probability from 0 to 1, found {}", in_quotes(*text)));
    }
  }
  refuse_two(request);
  return request;
}

// The flags that one question about columns has, and the other has not.
void parse_importance(const FrontEnd& front, CommandLine& line) {
  line.metric = front.value("metric").value_or("");
  line.partial = front.value("partial").value_or("");
  line.repeats = parse_count(front, "repeats", {1, 1001}, line.repeats);
  line.points = parse_count(front, "points", {2, 10'001}, line.points);
  const bool partial = front.value("partial").has_value();
  for (const char* flag : {"metric", "repeats", "points"}) {
    const bool of_partial = std::string_view(flag) == "points";
    if (!front.value(flag) || of_partial == partial) continue;
    throw ConfigError(of_partial ? "--points belongs to --partial COLUMN: name the column, or leave it out"
                                 : fmt::format("--{} has no effect with --partial: leave out one", flag));
  }
}

std::optional<double> parse_seconds(std::string_view text) {
  return parse_quantity(text, kTimes);
}

std::optional<double> parse_bandwidth(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const std::optional<double> bandwidth = parse_quantity(text, kBandwidths);
  return bandwidth == 0 ? std::nullopt : bandwidth;
}

}  // namespace lockstep
