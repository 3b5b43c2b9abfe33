// trainer bench: how near training comes to what this machine can do.

#include <algorithm>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/rank_placement.h"
#include "app/setup/run_config.h"
#include "app/setup/startup.h"
#include "app/training/run.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

constexpr Index kKib = 1024;
constexpr Index kExchangeBytes[] = {64,          16 * kKib,    256 * kKib,  1024 * kKib,
                                    4096 * kKib, 16384 * kKib, 65536 * kKib};
constexpr Index kUpdateWeights[] = {1 << 20, 4 << 20, 16 << 20};
constexpr double kStepSeconds = 2;
constexpr Index kFirstSteps = 20;

// A run of so many steps, without evaluation.
TrainingResult train_steps(Communicator& comm, const Experiment& experiment, Index steps) {
  Config config = experiment.config;
  config.train.steps = steps;
  config.train.epochs = 0;
  config.train.samples = 0;
  const RunPlan plan = experiment.plan(config, comm.size(), node_sizes(comm, config.debug.ranks_per_node));
  Run run(comm, experiment, plan);
  run.initialise_weights();
  run.load();
  Observer nobody;
  RunControl control(comm, {});
  return Trainer(run.training(nobody, control)).run();
}

StepRate measure_step(Communicator& comm, const Experiment& experiment, const SampleFlops& flops) {
  const TrainingResult first = train_steps(comm, experiment, kFirstSteps);
  const double once = broadcast_value(comm, first.seconds / kFirstSteps);
  const Index steps = std::clamp<Index>(static_cast<Index>(kStepSeconds / once), kFirstSteps, 10'000);
  const TrainingResult result = train_steps(comm, experiment, steps);
  const Index samples = result.progress.samples;
  return {.seconds = result.seconds / static_cast<double>(steps),
          .samples_per_second = result.samples_per_second,
          .flops = result.samples_per_second * (flops.forward + flops.backward),
          .samples = static_cast<double>(samples) / static_cast<double>(steps),
          .time = result.time};
}

// Each size with the strategies that can take a step on one rank, after the yardstick.
std::vector<UpdateRate> measure_updates(Communicator& comm, const Config& config) {
  std::vector<UpdateRate> rates;
  for (const Index weights : kUpdateWeights) {
    rates.push_back(measure_plain_update(comm, weights));
    for (const StrategyEntry& entry : strategy_catalog()) {
      if (entry.has_servers || entry.weights_per_replica) continue;
      DistOptions own = config.distribute;
      own.strategy = entry.name;
      rates.push_back(measure_update(comm, own, config.debug.ranks_per_node, weights));
    }
  }
  return rates;
}

void measure_exchanges(Communicator& comm, BenchReport& report) {
  const std::unique_ptr<Communicator> node = comm.split_by_node(0);
  if (node->size() > 1) report.cache_line_seconds = measure_cache_line(*node);
  for (const Index bytes : kExchangeBytes) {
    report.exchanges.push_back({.bytes = bytes, .seconds = measure_all_reduce(comm, bytes)});
  }
}

std::vector<AlgorithmRate> measure_algorithms(Communicator& comm, const Experiment& experiment,
                                              const Plan& plan) {
  std::vector<AlgorithmRate> rates;
  if (comm.size() == 1 || plan.workers() < comm.size()) return rates;
  for (const Index bytes : kExchangeBytes) {
    const Config& config = experiment.config;
    for (const AlgorithmRate& rate :
         lockstep::measure_algorithms(comm, config.distribute, plan, config.debug.ranks_per_node, bytes)) {
      rates.push_back(rate);
    }
  }
  return rates;
}

// The share of each rank by the strategy: weights to update and bytes to send.
void divide_step(Communicator& comm, const Experiment& experiment, const Plan& plan, StepRate& step) {
  const DistOptions& options = experiment.config.distribute;
  const Index slots = experiment.optimizer->slots();
  const CostModelInput costs{.options = options,
                             .plan = plan,
                             .optimizer = {*experiment.optimizer, experiment.model->layout()},
                             .node_sizes = node_sizes(comm, experiment.config.debug.ranks_per_node)};
  const StrategyEntry& strategy = strategy_entry(options.strategy);
  step.stepped = 0;
  for (const RankCosts& rank : strategy.costs(costs)) {
    step.stepped = std::max(step.stepped, rank.stepped);
    step.sent_bytes = std::max(step.sent_bytes, rank.sent);
  }
  if (!strategy.has_servers) {
    step.optimizer_bytes = step.stepped * static_cast<double>((3 + 2 * slots) * costs.weights_bytes());
  }
}

}  // namespace

int bench_command(Communicator& comm, const CommandLine& line) {
  const Index hosts = find_placement(comm).hosts();
  const ConfigText text = read_config_together(comm, line.text("config"));
  Config config =
      agree(comm, [&] { return load_training_config(line, text, {.ranks = comm.size(), .hosts = hosts}); });
  agree(comm, [&] {
    refuse_missing_precision(config);
    refuse_stages(config);
    if (comm.rank() == 0) check_outputs(line, files_read(line, config));
  });
  refuse_differences(comm, config);
  RankPeerGroup peers(comm);
  Experiment experiment = make_experiment(std::move(config), peers);
  experiment.validation.reset();
  experiment.test.reset();
  refuse_different_data(comm, experiment.sources());
  const std::vector<Index> nodes = node_sizes(comm, experiment.config.debug.ranks_per_node);
  RunPlan plan;
  agree(comm, [&] {
    refuse_too_large(*experiment.model);
    plan = experiment.plan(comm.size(), nodes);
    refuse_too_large(plan, experiment.config.distribute.memory_per_rank, comm.rank() >= plan.dist.workers());
    if (comm.rank() == 0) warn_of_memory(plan);
  });

  BenchReport report;
  report.ranks = comm.size();
  report.hosts = hosts;
  report.cores = count_cores();
  report.parameters = plan.parameters;
  report.precision = describe_precision(experiment.config);
  report.rows = divide_up(plan.dist.max_rows, experiment.config.train.accumulate);
  report.machine = measure_machine(comm);
  report.ops = measure_ops(comm, *experiment.model, report.rows);
  measure_exchanges(comm, report);
  report.algorithms = measure_algorithms(comm, experiment, plan.dist);
  report.note_on_order = note_on_order(experiment.config.distribute);
  report.updates = measure_updates(comm, experiment.config);
  report.step = measure_step(comm, experiment, flops_per_sample(report));
  report.step.workers = plan.dist.workers();
  report.step.replicas = plan.dist.replicas;
  report.step.threads = plan.dist.threads;
  report.step.accumulate = experiment.config.train.accumulate;
  divide_step(comm, experiment, plan.dist, report.step);
  agree_on_first(comm, [&] {
    print_report(line, to_text(report));
    if (line.has("json")) write_output(line.text("json"), to_json(report));
  });
  return 0;
}

}  // namespace lockstep
