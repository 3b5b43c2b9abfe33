#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "app/setup/rank_placement.h"
#include "app/setup/stage_choice.h"
#include "app/setup/startup.h"
#include "app/training/announcement.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/report/tables/bench_report.h"
#include "lockstep/report/tables/plan_table.h"

namespace lockstep {
namespace {

// The flags of plan.

constexpr Index kMaxRanks = kAnyRanks.end - 1;

struct Unit {
  std::string_view name;
  double size;
};

constexpr Unit kTimeUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kBandwidthUnits[] = {
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

// "500ns", "2us", "0.1ms", "1s": not negative.
std::optional<double> parse_seconds(std::string_view text) {
  return parse_quantity(text, kTimeUnits);
}

// "25Gbit", "100Mbit" (per second), "1.5GB", "300MB" ("/s" may follow): above 0.
std::optional<double> parse_bandwidth(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const std::optional<double> bandwidth = parse_quantity(text, kBandwidthUnits);
  return bandwidth == 0 ? std::nullopt : bandwidth;
}

// A number about the link between nodes; 0 on one node, which has no link.
template <class Parse>
double parse_link(const CommandLine& line, std::string_view flag, Index nodes, const std::string& expected,
                  const Parse& parse) {
  const std::optional<std::string> text = line.value(flag);
  if (!text && nodes == 1) return 0;
  if (!text) {
    throw ConfigError(fmt::format("--{} is missing: with several --nodes, expected {}", flag, expected));
  }
  const std::optional<double> value = parse(*text);
  if (!value) throw ConfigError(fmt::format("--{}: expected {}, found {}", flag, expected, in_quotes(*text)));
  return *value;
}

void refuse_without_nodes(const CommandLine& line) {
  for (const char* flag : {"ranks-per-node", "cores-per-node", "latency", "bandwidth", "from"}) {
    if (line.value(flag))
      throw ConfigError(fmt::format("--{} of plan describes machines: add --nodes", flag));
  }
}

std::vector<Index> parse_world_sizes(const CommandLine& line) {
  const std::string text = line.value("np").value_or("1");
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

// Warns of the first plan that may fail on a machine like this one.
std::string memory_warning(const std::vector<RunPlan>& plans) {
  for (const RunPlan& plan : plans) {
    const std::string doubt = doubt_of_memory(plan);
    if (!doubt.empty()) return fmt::format("WARNING: {}\n", doubt);
  }
  return "";
}

// The plans of the numbers of ranks, and what is said below their table.
struct Plans {
  std::vector<RunPlan> plans;
  std::vector<std::string> notes;
};

// A plan may be meant for another machine: the memory of this one decides only where nothing else says how
// many stages there are. One that a run would refuse here for its memory is shown all the same. Nodes that
// are pretended (debug.ranks_per_node) are this host, too.
void add_plan(Experiment& experiment, Index world, Plans& plans) {
  const double stated = experiment.config.distribute.memory_per_rank;
  const std::vector<Index> nodes = full_nodes(world, experiment.config.debug.ranks_per_node);
  const auto note = [&](const std::string& text) {
    if (!text.empty()) plans.notes.push_back(fmt::format("np {}: {}", world, text));
  };
  try {
    const bool chooses = experiment.config.distribute.stages == kAutoStages;
    const MemoryBudget budget{
        .world = world,
        .node_sizes = nodes,
        .limit = chooses && stated == 0 ? memory_of_rank(0, world) : memory_elsewhere(stated)};
    for (const std::string& reason : divide_as_needed(experiment, budget)) note(reason);
  } catch (const ConfigError& error) {
    if (experiment.config.distribute.stages != kAutoStages) throw;
    note(error.what());
    experiment.stages.clear();
  }
  plans.plans.push_back(experiment.plan(world, nodes));
  try {
    refuse_too_large(plans.plans.back(), stated);
  } catch (const ConfigError& error) {
    note(error.what());
  }
}

// trainer plan --nodes: what a step takes on machines that are not there.

using Json = nlohmann::ordered_json;

double read_number(const Json& from, const char* key) {
  const double number = from.at(key).get<double>();
  if (number >= 0 && std::isfinite(number)) return number;
  throw DataError(fmt::format("\"{}\" is {}, expected a number that is not negative", key, number));
}

Index read_count(const Json& from, const char* key) {
  const double value = read_number(from, key);
  if (value >= 1 && value < 1e15) return std::llround(value);
  throw DataError(fmt::format("\"{}\" is {}, expected a whole number above 0", key, value));
}

// The curve of the objects in a list; empty if all seconds are 0, which means not measured.
TimeCurve read_curve(const Json& report, const char* list, const char* amount, const char* seconds) {
  std::vector<TimeCurve::Point> points;
  for (const Json& entry : report.at(list)) {
    points.push_back({.amount = read_number(entry, amount), .seconds = read_number(entry, seconds)});
  }
  const auto not_above = [](const auto& a, const auto& b) { return a.amount >= b.amount; };
  if (points.size() < 2 || std::ranges::adjacent_find(points, not_above) != points.end()) {
    throw DataError(
        fmt::format("\"{}\" is not a list of at least two in ascending order of \"{}\"", list, amount));
  }
  const bool measured = std::ranges::any_of(points, [](const auto& point) { return point.seconds > 0; });
  return measured ? TimeCurve(std::move(points)) : TimeCurve();
}

BenchFigures read_figures(const Json& report) {
  const Json& step = report.at("step");
  const double seconds = read_number(step, "seconds");
  const auto part = [&](const char* key) { return seconds * read_number(step, key); };
  BenchFigures measured{
      .ranks = read_count(report, "ranks"),
      .hosts = read_count(report, "hosts"),
      .cores = read_count(report, "cores"),
      .parameters = read_count(report, "parameters"),
      .work = {.replicas = divide_up(read_count(step, "replicas"), read_count(step, "workers")),
               .rows = read_count(report, "rows")},
      .accumulate = read_count(step, "accumulate"),
      .threads = read_count(step, "threads"),
      .step = {.data = part("data"),
               .forward = part("forward"),
               .backward = part("backward"),
               .optimizer = part("optimizer"),
               .waiting = part("waiting")},
      .stepped = read_number(step, "stepped"),
      .pass = read_curve(report, "passes", "rows", "seconds"),
      .message = read_curve(report, "exchanges", "bytes", "message_seconds"),
      .shared = read_curve(report, "exchanges", "bytes", "shared_seconds"),
      .bf16 = report.at("precision").get<std::string>().starts_with("bf16")};
  if (measured.pass.empty() || seconds == 0 || measured.stepped == 0) {
    throw DataError("a step or a pass takes no time in it");
  }
  return measured;
}

// Errors: DataError naming the file and what is wrong in it; ConfigError if it is of a model with another
// number of parameters, or in another precision.
BenchFigures read_bench_file(const std::string& path, const Model& model) {
  const std::string text = read_file(path);
  const auto fail = [&](const char* what) {
    throw DataError(fmt::format(
        "--from '{}': {}; expected what 'trainer bench --json' of this version writes", path, excerpt(what)));
  };
  BenchFigures measured;
  try {
    measured = read_figures(parse_json<Json>(text));
  } catch (const Json::exception& error) {
    fail(error.what());
  } catch (const DataError& error) {
    fail(error.what());
  }
  const Index parameters = model.layout().count();
  if (measured.parameters != parameters) {
    throw ConfigError(fmt::format(
        "--from '{}' is of a model with {} parameters, but the config's has {}: run trainer bench with this "
        "config",
        path, with_commas(measured.parameters), with_commas(parameters)));
  }
  if (measured.bf16 != (model.precision() == Precision::kBf16)) {
    throw ConfigError(fmt::format(
        "--from '{}' was measured in {}, which is not the config's train.precision: run trainer bench with "
        "this config",
        path, measured.bf16 ? "bf16" : "fp32"));
  }
  return measured;
}

class ScaleForecast {
 public:
  ScaleForecast(const Experiment& experiment, const ScaleReport& report)
      : experiment_(experiment), report_(report) {}

  // The way of the config and all others.
  ScaleSection section(Scaling scaling) const {
    ScaleSection section{.scaling = scaling};
    for (const StrategyEntry& strategy : strategy_catalog()) add_ways(section, strategy);
    section.growth = growth(scaling, section.ended);
    if (section.growth.empty() && scaling == Scaling::kWeak) throw ConfigError(section.ended);
    return section;
  }

 private:
  Forecast at(Index nodes, Scaling scaling, const DistOptions& options) const {
    ClusterRequest cluster = report_.cluster;
    cluster.nodes = nodes;
    return forecast({.model = *experiment_.model,
                     .train = experiment_.config.train,
                     .distribute = options,
                     .measured = report_.measured,
                     .cluster = cluster,
                     .optimizer = {*experiment_.optimizer, experiment_.model->layout()}},
                    scaling);
  }

  // The strategy with each algorithm that it takes on these nodes.
  void add_ways(ScaleSection& section, const StrategyEntry& strategy) const {
    DistOptions options = experiment_.config.distribute;
    options.strategy = strategy.name;
    options.mode = ServerMode::kSync;
    options.backup_workers = 0;
    options.algorithm = kAutoAlgorithm;
    if (!uses_algorithm(options)) return add(section, options, "");
    const Nodes nodes{.count = report_.cluster.nodes, .largest = report_.cluster.ranks_per_node};
    for (const AlgorithmEntry* algorithm : possible_algorithms(options, nodes)) {
      DistOptions own = options;
      own.algorithm = algorithm->name;
      add(section, own, algorithm->name);
    }
  }

  // Or the reason why it cannot be run.
  void add(ScaleSection& section, const DistOptions& options, const std::string& algorithm) const {
    try {
      section.ways.push_back({.strategy = options.strategy,
                              .algorithm = algorithm,
                              .divides_layers = divides_layers(options, report_.cluster.ranks()) &&
                                                !divide_split_layers(*experiment_.model, 1).empty(),
                              .forecast = at(report_.cluster.nodes, section.scaling, options)});
    } catch (const ConfigError& error) {
      section.refused.push_back(fmt::format("{} {}: {}", options.strategy, algorithm, error.what()));
    }
  }

  // 1, 2, 4, ... and the number of nodes asked for.
  std::vector<GrowthRow> growth(Scaling scaling, std::string& ended) const {
    std::vector<GrowthRow> rows;
    const Index last = report_.cluster.nodes;
    for (Index nodes = 1; nodes <= last; nodes = nodes == last ? last + 1 : std::min(2 * nodes, last)) {
      try {
        rows.push_back({.nodes = nodes, .forecast = at(nodes, scaling, experiment_.config.distribute)});
        ended.clear();
      } catch (const ConfigError& error) {
        ended = error.what();
        if (!rows.empty()) return rows;
      }
    }
    return rows;
  }

  const Experiment& experiment_;
  const ScaleReport& report_;
};

// A number of ranks that cannot be run does not hide the others: its reason stands below the table.
int print_plans(const CommandLine& line) {
  const std::vector<Index> worlds = parse_world_sizes(line);
  Experiment experiment = make_experiment(
      load_training_config(line, read_config_file(line.text("config")), {.ranks = std::ranges::max(worlds)}),
      alone());
  log_notes(experiment.sources());
  Plans found;
  for (const Index world : worlds) {
    try {
      add_plan(experiment, world, found);
    } catch (const ConfigError& error) {
      found.notes.push_back(fmt::format("np {}: {}", world, error.what()));
    }
  }
  const auto& [plans, notes] = found;
  if (plans.empty()) throw ConfigError(notes.front());
  if (line.has("json")) {
    check_outputs(line, {});
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const RunPlan& plan : plans) all.push_back(to_json(plan_record(plan, *experiment.model)));
    write_output(line.text("json"), indented(all));
  }
  std::string text = model_table(*experiment.model) + "\n" + plan_table(plans);
  text += warn_of_uneven_shards(experiment, plans.back().sampling) + memory_warning(plans);
  for (const std::string& note : notes) text += note + "\n";
  print_report(line, text);
  return 0;
}

int print_scale(const CommandLine& line, const PlannedNodes& planned) {
  Config config =
      load_training_config(line, read_config_file(line.text("config")),
                           {.ranks = planned.nodes * planned.ranks_per_node, .hosts = planned.nodes});
  refuse_stages(config, "trainer plan --nodes predicts the time of");
  check_outputs(line, files_read(line, config));
  const Experiment experiment = make_experiment(std::move(config), alone());
  const DistOptions& distribute = experiment.config.distribute;
  ScaleReport report{.cluster = {.nodes = planned.nodes,
                                 .ranks_per_node = planned.ranks_per_node,
                                 .latency = planned.latency,
                                 .bandwidth = planned.bandwidth,
                                 .cores = planned.cores},
                     .measured = read_bench_file(planned.bench, *experiment.model),
                     .bench = planned.bench,
                     .exchange = distribute.strategy,
                     .gradient_bytes = experiment.model->layout().size * Index{sizeof(Scalar)},
                     .note_on_order = note_on_order(distribute)};
  if (uses_algorithm(distribute)) report.exchange += fmt::format(", algorithm {}", distribute.algorithm);
  const ScaleForecast scale(experiment, report);
  std::vector<ScaleSection> sections{scale.section(Scaling::kWeak)};
  if (experiment.config.train.global_batch > 0) sections.push_back(scale.section(Scaling::kStrong));
  report.sections = std::move(sections);
  print_report(line, to_text(report));
  if (line.has("json")) write_output(line.text("json"), to_json(report));
  return 0;
}

}  // namespace

PlannedNodes read_planned_nodes(const CommandLine& line) {
  if (!line.value("nodes")) {
    refuse_without_nodes(line);
    return {};
  }
  if (line.value("np")) throw ConfigError("--np and --nodes: give one of them");
  PlannedNodes planned;
  planned.nodes = line.count("nodes", kAnyRanks, 1);
  planned.ranks_per_node = line.count("ranks-per-node", kAnyRanks, 1);
  planned.cores = line.count("cores-per-node", kAnyRanks, 0);
  if (planned.ranks_per_node > kMaxRanks / planned.nodes) {
    throw ConfigError(fmt::format("--nodes {} --ranks-per-node {}: expected at most {} ranks in all",
                                  planned.nodes, planned.ranks_per_node, kMaxRanks));
  }
  planned.latency =
      parse_link(line, "latency", planned.nodes, "a time such as 500ns, 2us or 0.1ms", parse_seconds);
  planned.bandwidth = parse_link(line, "bandwidth", planned.nodes,
                                 "bits or bytes per second such as 25Gbit, 100Mbit or 3GB", parse_bandwidth);
  planned.bench = line.text("from");
  if (planned.bench.empty()) {
    throw ConfigError(fmt::format(
        "--from is missing: how fast ranks compute is measured, not told; run 'mpirun -np 2 trainer bench "
        "--config {} --json bench.json' first and add --from bench.json",
        line.text("config")));
  }
  return planned;
}

int plan_command(const CommandLine& line) {
  const PlannedNodes planned = read_planned_nodes(line);
  return planned.nodes > 0 ? print_scale(line, planned) : print_plans(line);
}

}  // namespace lockstep
