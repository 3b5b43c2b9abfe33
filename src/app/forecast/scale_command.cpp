// trainer plan --nodes: what a step takes on machines that are not there.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <utility>

#include "app/commands.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "app/setup/rank_placement.h"
#include "app/setup/stage_choice.h"
#include "bench_command.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/stages.h"
#include "lockstep/report/scale_report.h"

namespace lockstep {
namespace {

// The end of the search for the number of nodes at which exchange overtakes compute.
constexpr Index kMaxNodes = 4096;
constexpr Index kMaxRanks = Index{1} << 17;

// A way to exchange, as options.
struct Way {
  std::string algorithm;
  DistOptions options;
};

// The stages that a model is divided into; none if it is not.
struct Stages {
  std::vector<std::unique_ptr<Model>> models;
  std::vector<OptimizerMemory> optimizers;
};

class ScaleForecast {
 public:
  ScaleForecast(const Experiment& experiment, const ScaleReport& report)
      : experiment_(experiment), report_(report), options_(experiment.config.distribute) {
    if (options_.stages == kAutoStages) options_.stages = needed_stages();
  }

  // `undivided`: of the same model without split=rows; null if it has no such layers.
  ScaleSection section(Scaling scaling, ScaleForecast* undivided) {
    ScaleSection section{.scaling = scaling};
    for (const Way& way : ways(options_.stages)) {
      add(section, way);
      if (undivided != nullptr && divides(way.options)) undivided->add(section, way);
    }
    for (const Index stages : other_stages()) add_fastest(section, stages);
    section.growth = growth(scaling, section.ended);
    if (section.growth.empty() && scaling == Scaling::kWeak) throw ConfigError(section.ended);
    return section;
  }
  Index stages() const { return options_.stages; }

 private:
  Index ranks() const { return report_.cluster.nodes * report_.cluster.ranks_per_node; }
  std::vector<Index> nodes() const { return full_nodes(ranks(), report_.cluster.ranks_per_node); }

  MemoryBudget budget() const {
    return {.world = ranks(), .node_sizes = nodes(), .limit = memory_elsewhere(options_.memory_per_rank)};
  }

  // The machines are not here: only a limit that is stated can need stages.
  Index needed_stages() const {
    if (options_.memory_per_rank == 0) return 1;
    try {
      return choose_division(experiment_, budget()).count();
    } catch (const ConfigError&) {
      return 1;  // the table says what fits
    }
  }

  // By the memory of the config's strategy, so that all ways are compared on the same stages.
  std::vector<std::unique_ptr<Model>> divide(const DistOptions& options) const {
    Config config = experiment_.config;
    config.distribute.stages = options.stages;
    config.distribute.cut = options.cut;
    try {
      if (options_.memory_per_rank > 0) return divide_to_fit(experiment_, config, budget()).stages;
    } catch (const ConfigError&) {
      // The data set may be too small for so many ranks, and the ways say what cannot be.
    }
    return experiment_.divided(options);
  }

  const Stages& divided(const DistOptions& options) {
    const auto known = stages_.find(options.stages);
    if (known != stages_.end()) return known->second;
    Stages stages{.models = divide(options), .optimizers = {}};
    for (const std::unique_ptr<Model>& stage : stages.models) {
      stages.optimizers.emplace_back(*experiment_.optimizer, stage->layout());
    }
    return stages_.emplace(options.stages, std::move(stages)).first->second;
  }

  Forecast at(Index nodes, Scaling scaling, const DistOptions& options) {
    ClusterRequest cluster = report_.cluster;
    cluster.nodes = nodes;
    const Stages& stages = divided(options);
    return forecast({.model = *experiment_.model,
                     .train = experiment_.config.train,
                     .distribute = options,
                     .measured = report_.measured,
                     .cluster = cluster,
                     .optimizer = {*experiment_.optimizer, experiment_.model->layout()},
                     .stages = stages.models,
                     .stage_optimizers = stages.optimizers},
                    scaling);
  }

  // Every strategy, with each algorithm that it takes on these nodes.
  std::vector<Way> ways(Index stages) const {
    std::vector<Way> ways;
    const Nodes nodes{.count = report_.cluster.nodes, .largest = report_.cluster.ranks_per_node};
    for (const StrategyEntry& strategy : strategy_catalog()) {
      DistOptions options = options_;
      options.strategy = strategy.name;
      options.mode = ServerMode::kSync;
      options.backup_workers = 0;
      options.algorithm = kAutoAlgorithm;
      if (stages != options_.stages) options.cut = {kAutoCut};
      options.stages = stages;
      if (!uses_algorithm(options)) {
        ways.push_back({.algorithm = "", .options = options});
        continue;
      }
      for (const AlgorithmEntry* algorithm : possible_algorithms(options, nodes)) {
        ways.push_back({.algorithm = algorithm->name, .options = options});
        ways.back().options.algorithm = algorithm->name;
      }
    }
    return ways;
  }

  // Numbers of stages that groups on these nodes could have, but for that of the config.
  std::vector<Index> other_stages() const {
    std::vector<Index> numbers;
    const Index on_node = report_.cluster.ranks_per_node;
    for (Index stages = 1; stages <= ranks(); ++stages) {
      if (stages == options_.stages || ranks() % stages != 0) continue;
      const Index together = StageGrid(ranks(), stages, options_.placement).neighbouring_ranks();
      if (on_node % together == 0 || together % on_node == 0) numbers.push_back(stages);
    }
    return numbers;
  }

  // Whether ranks divide layers.
  bool divides(const DistOptions& options) const {
    return options.stages == 1 && divides_layers(options, ranks()) &&
           !divide_split_layers(*experiment_.model, 1).empty();
  }

  // Nothing, with the reason among those of the section, if it cannot be run.
  std::optional<ForecastRow> row_of(ScaleSection& section, const Way& way) {
    try {
      ForecastRow row{.strategy = way.options.strategy,
                      .algorithm = way.algorithm,
                      .stages = way.options.stages,
                      .divides_layers = divides(way.options),
                      .forecast = at(report_.cluster.nodes, section.scaling, way.options)};
      row.memory = memory_of(way.options, row.forecast);
      return row;
    } catch (const ConfigError& error) {
      section.refused.push_back(fmt::format("{} {}: {}", way.options.strategy, way.algorithm, error.what()));
      return std::nullopt;
    }
  }

  void add(ScaleSection& section, const Way& way) {
    std::optional<ForecastRow> row = row_of(section, way);
    if (!row) return;
    look_for_crossing(*row, section.scaling, way.options);
    section.ways.push_back(*row);
  }

  // With another number of stages the fastest way is enough; ways that cannot be run are not of interest.
  void add_fastest(ScaleSection& section, Index stages) {
    ScaleSection tried{.scaling = section.scaling};
    std::optional<ForecastRow> fastest;
    DistOptions options;  // its own
    for (const Way& way : ways(stages)) {
      const std::optional<ForecastRow> row = row_of(tried, way);
      if (!row || (fastest && row->forecast.seconds() >= fastest->forecast.seconds())) continue;
      fastest = row;
      options = way.options;
    }
    if (!fastest) return;
    look_for_crossing(*fastest, section.scaling, options);
    section.ways.push_back(*fastest);
  }

  // The memory of a rank by the plan; 0 if the data set is too small for such a run. Errors: ConfigError for
  // what cannot be combined with stages, or with layers that ranks divide.
  Index memory_of(const DistOptions& options, const Forecast& forecast) {
    Config config = experiment_.config;
    config.distribute = options;
    config.train.replicas = forecast.replicas;
    config.train.per_replica_batch = 0;
    config.train.global_batch = forecast.global_batch;
    try {
      return make_run_plan(experiment_.plan_request(config, divided(options).models, ranks(), nodes()))
          .memory.total();
    } catch (const ConfigError&) {
      if (options.stages > 1 || divides(options)) throw;
      return 0;
    }
  }

  // Fewer nodes may need another algorithm, or none.
  void look_for_crossing(ForecastRow& row, Scaling scaling, DistOptions options) {
    const Index most =
        std::max(report_.cluster.nodes, std::min(kMaxNodes, kMaxRanks / report_.cluster.ranks_per_node));
    for (Index nodes = 1; nodes <= most && !row.overtaken; nodes *= 2) {
      if (nodes * report_.cluster.ranks_per_node % row.stages != 0) continue;
      try {
        const bool alone = nodes == 1 && report_.cluster.nodes > 1;
        options.algorithm = alone ? kAutoAlgorithm : row.algorithm.empty() ? kAutoAlgorithm : row.algorithm;
        if (at(nodes, scaling, options).exchange_overtakes()) row.overtaken = nodes;
        row.looked_at = nodes;
      } catch (const ConfigError& error) {
        row.ended = error.what();
        return;
      }
    }
  }

  // 1, 2, 4, ... and the number of nodes asked for.
  std::vector<GrowthRow> growth(Scaling scaling, std::string& ended) {
    std::vector<GrowthRow> rows;
    const Index last = report_.cluster.nodes;
    for (Index nodes = 1; nodes <= last; nodes = nodes == last ? last + 1 : std::min(2 * nodes, last)) {
      try {
        rows.push_back({.nodes = nodes, .forecast = at(nodes, scaling, options_)});
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
  DistOptions options_;
  std::map<Index, Stages> stages_;
};

// This experiment with layers that are not split; nothing if none is.
std::optional<Experiment> without_split_layers(LoadedConfig loaded, const Experiment& experiment) {
  if (divide_split_layers(*experiment.model, 1).empty()) return std::nullopt;
  // With the comma before it, or as the first argument with that behind it.
  static const std::regex kSplit(
      "\\s*,\\s*split\\s*=\\s*[\"']?rows[\"']?|split\\s*=\\s*[\"']?rows[\"']?\\s*,\\s*");
  std::string& layers = loaded.config.model.layers;
  layers = std::regex_replace(layers, kSplit, "");
  return make_experiment(loaded, alone());
}

}  // namespace

int scale_command(const CommandLine& line) {
  const PlannedNodes& planned = line.planned;
  const LoadedConfig loaded =
      load_checked_config(line, read_config_file(line.config_file),
                          {.ranks = planned.nodes * planned.ranks_per_node, .hosts = planned.nodes});
  check_outputs(line, files_read(line, loaded.config));
  const Experiment experiment = make_experiment(loaded, alone());
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
                     .memory_per_rank = distribute.memory_per_rank,
                     .note_on_order = note_on_order(distribute)};
  if (uses_algorithm(distribute)) report.exchange += fmt::format(", algorithm {}", distribute.algorithm);
  ScaleForecast scale(experiment, report);
  if (scale.stages() > 1) {
    report.exchange += fmt::format(", {} stages", scale.stages());
    if (distribute.placement == StagePlacement::kSpread) report.exchange += ", spread";
  }
  const std::optional<Experiment> unsplit = without_split_layers(loaded, experiment);
  std::optional<ScaleForecast> undivided;
  if (unsplit) undivided.emplace(*unsplit, report);
  const auto section = [&](Scaling scaling) {
    return scale.section(scaling, undivided ? &*undivided : nullptr);
  };
  std::vector<ScaleSection> sections{section(Scaling::kWeak)};
  if (experiment.config.train.global_batch > 0) sections.push_back(section(Scaling::kStrong));
  report.sections = std::move(sections);
  print_report(line, to_text(report));
  if (!line.json.empty()) write_output(line.json, to_json(report));
  return 0;
}

}  // namespace lockstep
