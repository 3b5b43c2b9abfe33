#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "catalogs.h"
#include "commands.h"
#include "data_notes.h"
#include "experiment.h"
#include "guards.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/config/toml.h"
#include "lockstep/dist/algorithm.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/report/metrics_file.h"
#include "lockstep/report/progress_line.h"
#include "lockstep/train/model_file.h"
#include "lockstep/train/model_table.h"
#include "lockstep/train/rank_colleagues.h"
#include "lockstep/train/run_directory.h"
#include "lockstep/train/trainer.h"
#include "precision.h"
#include "run.h"
#include "startup.h"

namespace lockstep {
namespace {

// What rank 0 writes while the run goes on; the other ranks have none.
class RunOutput final : public Observer {
 public:
  RunOutput(const RunDirectory& directory, const Config& config, const RunPlan& plan)
      : metrics_(directory.metrics()), line_(config.run.progress, plan.whole_run()) {}

  void on_step(const Progress& progress, double loss) override { line_.on_step(progress, loss); }
  void on_train_metrics(const TrainMetrics& metrics) override {
    metrics_.on_train_metrics(metrics);
    line_.on_train_metrics(metrics);
  }
  void on_evaluation(const EvalMetrics& metrics) override {
    metrics_.on_evaluation(metrics);
    line_.on_evaluation(metrics);
  }
  void on_workers(const WorkersReport& report, const Progress& progress) override {
    metrics_.on_workers(report, progress);
  }
  void on_audit(Index epoch, Index samples, Index times) override {
    spdlog::info("audit: epoch {} used {} samples, each {} time{}", epoch, with_commas(samples), times,
                 times == 1 ? "" : "s");
  }

 private:
  MetricsFile metrics_;
  ProgressLine line_;
};

// Rank 0: the directory, with what is known before the first step.
RunDirectory prepare_directory(const Experiment& experiment, const RunPlan& plan) {
  Config config = experiment.config;
  config.train.replicas = plan.sampling.replicas;  // so that the same run is repeated on any number of ranks
  RunDirectory directory = create_run_directory(config.run.dir);
  add_log_file(directory.log());
  write_file_atomically(directory.config(), to_toml(config, keys_without_effect(config, choices(config))));
  write_file_atomically(directory.plan(),
                        model_table(*experiment.model) + "\n" + plan_table(std::span(&plan, 1)));
  const std::string schema = experiment.train->schema();
  if (!schema.empty()) write_file_atomically(directory.schema(), schema);
  const std::string rejects = list_rejects(experiment.sources());
  if (!rejects.empty()) write_file_atomically(directory.rejects(), rejects);
  return directory;
}

void announce(Communicator& comm, const Config& config, const RunPlan& plan, Index hosts) {
  spdlog::info("{} rank{} on {} host{}, {} replica{}, {} thread{}, precision {}", comm.size(),
               comm.size() == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s", plan.sampling.replicas,
               plan.sampling.replicas == 1 ? "" : "s", plan.dist.threads, plan.dist.threads == 1 ? "" : "s",
               describe_precision(config));
  std::string table = plan_table(std::span(&plan, 1));
  table.pop_back();  // the log ends the line itself
  spdlog::info("plan:\n{}", table);
}

// One line for each rank: what it holds.
void report_loaded(Communicator& comm, const RunPlan& plan, const Records& train) {
  constexpr std::size_t kMostLines = 64;
  const Range replicas = plan.dist.hosted[static_cast<std::size_t>(comm.rank())];
  const std::string holds =
      replicas.empty() ? "serves"
      : plan.sampling.stream
          ? fmt::format("streams {} rows (replicas {} to {})",
                        with_commas(make_sampler(plan.sampling)->needed(replicas)), replicas.begin,
                        replicas.end - 1)
          : fmt::format("loaded {} rows, {} (replicas {} to {})", with_commas(train.rows()),
                        human_bytes(static_cast<double>(train.bytes())), replicas.begin, replicas.end - 1);
  const std::vector<std::string> lines = gather_texts(comm, fmt::format("rank {} {}", comm.rank(), holds));
  for (std::size_t rank = 0; rank < std::min(lines.size(), kMostLines); ++rank)
    spdlog::info("{}", lines[rank]);
  if (lines.size() > kMostLines) spdlog::info("... and so on for {} more ranks", lines.size() - kMostLines);
}

// How gradients are exchanged, where that was chosen.
void report_algorithm(const std::string& algorithm, const DistOptions& distribute) {
  if (algorithm.empty()) return;
  std::string why;
  if (distribute.algorithm == kAutoAlgorithm) {
    why = distribute.calibrate ? ", the fastest here by calibration" : ", by rule";
  }
  spdlog::info("exchange algorithm: {}{}", algorithm, why);
}

void write_summary(const RunDirectory& directory, const TrainingResult& result,
                   const std::string& algorithm) {
  nlohmann::ordered_json json{{"steps", result.progress.steps},
                              {"samples_seen", result.progress.samples},
                              {"epochs", result.progress.epochs},
                              {"seconds", result.seconds},
                              {"samples_per_second", result.samples_per_second},
                              {"time", nlohmann::ordered_json::parse(to_json(result.time))}};
  if (!algorithm.empty()) json["algorithm"] = algorithm;
  if (result.last_evaluation)
    json["evaluation"] = nlohmann::ordered_json::parse(to_json(*result.last_evaluation));
  if (result.workers) json["asynchrony"] = nlohmann::ordered_json::parse(to_json(*result.workers));
  write_file_atomically(directory.summary(), json.dump(2) + "\n");
}

std::string describe_staleness(const WorkersReport& report) {
  Index dropped = 0;
  Index computed = 0;
  for (const WorkerRecord& worker : report.workers) {
    dropped += worker.dropped;
    computed += worker.computed;
  }
  if (dropped > 0) {
    return fmt::format("dropped: {} of {} gradients", with_commas(dropped), with_commas(computed));
  }
  return fmt::format("staleness: mean {:.2f}, 95th percentile {}", report.mean_staleness(),
                     report.staleness_percentile(0.95));
}

// One line for each worker, and how unevenly their samples count.
void report_workers(const WorkersReport& report, const Progress& progress) {
  spdlog::info("{}", describe_staleness(report));
  const double fair = static_cast<double>(progress.samples) / static_cast<double>(report.workers.size());
  for (std::size_t rank = 0; rank < report.workers.size(); ++rank) {
    const WorkerRecord& worker = report.workers[rank];
    std::string dropped;
    if (worker.dropped > 0) {
      dropped = fmt::format(", {} dropped with {} samples", with_commas(worker.dropped),
                            with_commas(worker.dropped_samples));
    }
    spdlog::info("worker {}: {} gradients with {} samples{}: {:.2f} times an even share", rank,
                 with_commas(worker.steps), with_commas(worker.samples), dropped,
                 static_cast<double>(worker.samples) / fair);
  }
}

void report_result(const RunDirectory& directory, const TrainingResult& result) {
  std::string quality;
  if (result.last_evaluation) {
    const EvalMetrics& last = *result.last_evaluation;
    quality = fmt::format("{} loss {:.4f}", to_string(last.split), last.loss);
    if (last.accuracy) quality += fmt::format(", accuracy {:.2f} %", 100 * *last.accuracy);
    for (const MetricValue& other : last.others) quality += ", " + to_string(other);
    quality += "; ";
  }
  const TimeShares& time = result.time;
  const std::string hidden = time.hidden ? fmt::format(" (hidden: {:.0f} % of it)", 100 * *time.hidden) : "";
  spdlog::info(
      "done: {}{} steps, {} samples in {} ({} samples/s); time: data {:.1f} %, compute {:.1f} %, "
      "communication "
      "{:.1f} %{}, waiting {:.1f} %",
      quality, with_commas(result.progress.steps), with_commas(result.progress.samples),
      human_seconds(result.seconds), with_commas(static_cast<Index>(result.samples_per_second)),
      100 * time.data, 100 * time.compute, 100 * time.communication, hidden, 100 * time.waiting);
  if (result.workers) report_workers(*result.workers, result.progress);
  std::string also;
  for (const std::filesystem::path& file : {directory.schema(), directory.rejects()}) {
    if (std::filesystem::exists(file)) also += ", " + file.filename().string();
  }
  spdlog::info(
      "written: {} with config.toml, plan.txt, log.txt, metrics.jsonl, summary.json, model.safetensors{}",
      directory.root.string(), also);
}

}  // namespace

int train_command(Communicator& comm, const CommandLine& line) {
  const Index hosts = count_hosts(comm);
  const LoadedConfig loaded = load_config_together(comm, line, {.ranks = comm.size(), .hosts = hosts});
  const Index pretended = loaded.config.debug.ranks_per_node;
  const Index ranks_per_node = pretended > 0 ? pretended : (comm.size() + hosts - 1) / hosts;
  agree(comm, [&] {
    if (loaded.config.run.dir.empty()) {
      throw ConfigError(
          "run.dir is missing: give the directory in which the run is to be kept (--run.dir runs/NAME)");
    }
    refuse_missing_precision(loaded.config);
  });
  refuse_differences(comm, loaded.config);
  RankColleagues colleagues(comm);
  const Experiment experiment = make_experiment(loaded, colleagues);
  RunPlan plan;
  agree(comm, [&] { plan = experiment.plan(comm.size(), ranks_per_node); });
  refuse_different_data(comm, experiment.sources());

  RunDirectory directory;
  std::unique_ptr<Observer> observer = std::make_unique<SilentObserver>();
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    directory = prepare_directory(experiment, plan);
    observer = std::make_unique<RunOutput>(directory, experiment.config, plan);
  });
  tell_notes(experiment.sources());
  announce(comm, experiment.config, plan, hosts);
  const bool helped = loaded.config.distribute.progress_thread && comm.size() > 1;
  warn_of_few_cores(comm, plan.dist.threads + (helped ? 1 : 0));
  if (comm.rank() == 0 && loaded.config.distribute.reduction == Reduction::kOrdered &&
      !loaded.given.contains("train.replicas")) {
    spdlog::warn(
        "train.replicas is not given, so it follows the number of ranks, and another number gives other "
        "bits; "
        "for the same bits anywhere set train.replicas = {}",
        plan.sampling.replicas);
  }

  std::unique_ptr<Run> run;
  try {
    run = std::make_unique<Run>(comm, experiment, plan);
    run->initialise_weights();
    run->load();
  } catch (const AgreedError&) {
    // Nothing was learned: a directory left behind would only be in the way of the next attempt.
    if (comm.rank() == 0) std::filesystem::remove_all(directory.root);
    throw;
  }
  report_loaded(comm, plan, run->records());
  report_algorithm(run->algorithm(), loaded.config.distribute);

  const auto save = [&] {
    AlignedBuffer<Scalar> stored = run->stored();
    const Model& model = *experiment.model;
    agree(comm, [&] {
      if (comm.rank() == 0) {
        save_model(directory.model(), {.layout = &model.stored_layout(), .values = stored.span()},
                   model.input());
      }
    });
  };
  try {
    const TrainingResult result = run->train(*observer);
    save();
    if (comm.rank() == 0) {
      write_summary(directory, result, run->algorithm());
      report_result(directory, result);
    }
  } catch (const AgreedError&) {
    save();  // the weights of the last good step
    throw;
  }
  return 0;
}

}  // namespace lockstep
