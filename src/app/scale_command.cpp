// trainer plan --nodes: what a step takes on machines that are not there.
#include <fmt/format.h>

#include <algorithm>

#include "bench_file.h"
#include "commands.h"
#include "experiment.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/report/scale_report.h"
#include "outputs.h"

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

class Scale {
 public:
  Scale(const Experiment& experiment, const ScaleReport& report) : experiment_(experiment), report_(report) {}

  ScaleSection section(Scaling scaling) const {
    ScaleSection section{.scaling = scaling};
    for (const Way& way : ways()) add(section, way);
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
                     .calibration = report_.calibration,
                     .cluster = cluster,
                     .optimizer = {*experiment_.optimizer, experiment_.model->layout()}},
                    scaling);
  }

  // Every strategy, with each algorithm that it takes on these nodes.
  std::vector<Way> ways() const {
    std::vector<Way> ways;
    const Nodes nodes{.count = report_.cluster.nodes, .largest = report_.cluster.ranks_per_node};
    for (const StrategyEntry& strategy : strategy_catalog()) {
      DistOptions options = experiment_.config.distribute;
      options.strategy = strategy.name;
      options.mode = ServerMode::kSync;
      options.backup_workers = 0;
      options.algorithm = kAutoAlgorithm;
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

  void add(ScaleSection& section, const Way& way) const {
    try {
      ForecastRow row{.strategy = way.options.strategy,
                      .algorithm = way.algorithm,
                      .forecast = at(report_.cluster.nodes, section.scaling, way.options)};
      look_for_crossing(row, section.scaling, way.options);
      section.ways.push_back(row);
    } catch (const ConfigError& error) {
      section.refused.push_back(fmt::format("{} {}: {}", way.options.strategy, way.algorithm, error.what()));
    }
  }

  // Fewer nodes may need another algorithm, or none.
  void look_for_crossing(ForecastRow& row, Scaling scaling, DistOptions options) const {
    const Index most =
        std::max(report_.cluster.nodes, std::min(kMaxNodes, kMaxRanks / report_.cluster.ranks_per_node));
    for (Index nodes = 1; nodes <= most && !row.overtaken; nodes *= 2) {
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

}  // namespace

int scale_command(const CommandLine& line) {
  const PlannedNodes& planned = line.planned;
  const LoadedConfig loaded =
      load_checked_config(line, read_config_file(line.config_file),
                          {.ranks = planned.nodes * planned.ranks_per_node, .hosts = planned.nodes});
  check_outputs(line, files_read(line, loaded.config));
  refuse_stages(loaded.config, "trainer plan --nodes predicts");
  const Experiment experiment = make_experiment(loaded, alone());
  const DistOptions& distribute = experiment.config.distribute;
  ScaleReport report{.cluster = {.nodes = planned.nodes,
                                 .ranks_per_node = planned.ranks_per_node,
                                 .latency = planned.latency,
                                 .bandwidth = planned.bandwidth,
                                 .cores = planned.cores},
                     .calibration = read_bench_file(planned.bench, *experiment.model),
                     .bench = planned.bench,
                     .exchange = distribute.strategy,
                     .gradient_bytes = experiment.model->layout().size * Index{sizeof(Scalar)},
                     .note_on_order = note_on_order(distribute)};
  if (uses_algorithm(distribute)) report.exchange += fmt::format(", algorithm {}", distribute.algorithm);
  const Scale scale(experiment, report);
  std::vector<ScaleSection> sections{scale.section(Scaling::kWeak)};
  if (experiment.config.train.global_batch > 0) sections.push_back(scale.section(Scaling::kStrong));
  report.sections = std::move(sections);
  print_report(line, to_text(report));
  if (!line.json.empty()) write_output(line.json, to_json(report));
  return 0;
}

}  // namespace lockstep
