#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "build_facts.h"
#include "catalogs.h"
#include "commands.h"
#include "content_check.h"
#include "data_notes.h"
#include "guards.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/config/toml.h"
#include "lockstep/report/model_table.h"
#include "lockstep/report/plan_table.h"
#include "lockstep/train/loop/time_limit.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/model_file.h"
#include "lost_files.h"
#include "precision.h"
#include "rank_places.h"
#include "restart.h"
#include "resume_changes.h"
#include "resume_state.h"
#include "run.h"
#include "run_files.h"
#include "run_length.h"
#include "run_output.h"
#include "run_reports.h"
#include "startup.h"

namespace lockstep {
namespace {

// What describes a run, and lies in its directory and in each of its checkpoints.
std::map<std::string, std::string> describing_texts(const Experiment& experiment, const RunPlan& plan) {
  Config config = experiment.config;
  config.train.replicas = plan.sampling.replicas;  // so that the same run is repeated on any number of ranks
  if (config.run.resume == kRestart) config.run.resume = kAuto;  // one restart is meant, not one each time
  const RunDirectory names;
  std::map<std::string, std::string> texts{
      {names.config().string(), to_toml(config, keys_without_effect(config, choices(config)))}};
  const std::string schema = experiment.train->schema();
  if (!schema.empty()) texts[names.schema().string()] = schema;
  return texts;
}

// Rank 0: what is known before the first step. Only once the run is sure to go on: it replaces what an
// earlier start has written.
void fill_directory(const RunDirectory& directory, const Experiment& experiment, const RunPlan& plan,
                    const std::map<std::string, std::string>& texts) {
  for (const auto& [name, text] : texts) write_file_atomically(directory.root / name, text);
  write_file_atomically(directory.plan(),
                        model_table(*experiment.model) + "\n" + plan_table(std::span(&plan, 1)));
  const std::string rejects = list_rejects(experiment.sources());
  if (!rejects.empty()) write_file_atomically(directory.rejects(), rejects);
}

// Until this job is ended by force.
TimeLeft time_left(const RunOptions& run) {
  if (!run.time_limit.empty()) {
    return {.seconds = parse_time_limit("run.time_limit", run.time_limit), .warning = {}};
  }
  const std::optional<std::string> end = environment_text("SLURM_JOB_END_TIME");
  if (!end) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return job_time_left(*end, std::chrono::duration<double>(now).count());
}

// Rank 0.
void report_time_left(const TimeLeft& left) {
  if (!left.warning.empty()) spdlog::warn("{}", left.warning);
  if (!left.seconds || !std::isfinite(*left.seconds)) return;
  spdlog::info("time limit: the run saves itself and stops within {}", human_seconds(*left.seconds));
}

// How the run is saved and stopped; part of it refers to the rest.
struct Watch {
  Watch(Communicator& comm, const Experiment& experiment, const ResumeState& resume)
      : left(time_left(experiment.config.run)),
        every(parse_interval("checkpoint.every", experiment.config.checkpoint.every)),
        control(comm, {.stop_file = resume.directory.stop(),
                       .checkpoint_seconds = every.seconds,
                       .seconds_left = left.seconds,
                       .last_checkpoint = [this] { return writer.last_seconds(); }}),
        writer(comm, checkpoint_directory(experiment.config, resume.directory),
               experiment.config.checkpoint.keep, checkpoint_hooks(experiment.config, resume)),
        saving{.writer = writer, .every = every, .wait = experiment.config.checkpoint.wait} {
    const std::string& best = experiment.config.checkpoint.best;
    if (best.empty()) return;
    const bool has_accuracy = experiment.loss->targets() != TargetKind::kValue;
    saving.best.emplace(best, experiment.config.eval.metrics, has_accuracy);
  }

  TimeLeft left;
  Interval every;
  RunControl control;
  CheckpointWriter writer;
  Saving saving;
};

std::map<std::string, std::string> versions() {
  std::map<std::string, std::string> all;
  for (const std::string& fact : build_facts()) {
    const std::size_t colon = fact.find(": ");
    all[fact.substr(0, colon)] = fact.substr(colon + 2);
  }
  return all;
}

int report_stop(Communicator& comm, const Config& config, const ResumeState& resume,
                const TrainingResult& result, const Watch& watch, const LostFiles& lost) {
  const std::string& failure = watch.writer.last_failure();
  const std::string steps = with_commas(result.progress.steps);
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    const std::string mishap = describe_lost_directory(resume.directory, resume.lock);
    if (mishap.empty()) return;
    throw DataError(fmt::format("stopped {}after {} steps by {}, but {}{}",
                                failure.empty() ? "and saved " : "", steps, result.stopped, mishap,
                                failure.empty() ? "" : "; the last checkpoint is lost"));
  });
  if (!failure.empty()) {
    throw AgreedError(fmt::format("stopped after {} steps by {}, but this was lost: {}", steps,
                                  result.stopped, lost.describe()),
                      kExitData);
  }
  if (comm.rank() != 0) return kExitStopped;
  spdlog::info("stopped after {} steps by {}; {} goes on from there{}", steps, result.stopped,
               resume_command(config),
               lost.empty() ? "" : fmt::format("; lost: lines of {}", fmt::join(lost.names(), " and ")));
  std::error_code ignored;
  std::filesystem::remove(resume.directory.stop(), ignored);
  return kExitStopped;
}

}  // namespace

int train_command(Communicator& world, const CommandLine& line) {
  const RankPlaces places = find_places(world);
  const Index hosts = places.hosts;
  LoadedConfig loaded = load_config_together(world, line, {.ranks = world.size(), .hosts = hosts});
  Watchdog watchdog(world, loaded.config.comm, loaded.config.debug.ranks_per_node);
  Communicator& comm = watchdog.comm();
  const Index pretended = loaded.config.debug.ranks_per_node;
  const Index ranks_per_node = pretended > 0 ? pretended : divide_up(comm.size(), hosts);
  agree(comm, [&] {
    if (loaded.config.run.dir.empty()) {
      throw ConfigError(
          "run.dir is missing: give the directory in which the run is to be kept (--run.dir runs/NAME)");
    }
    refuse_missing_precision(loaded.config);
  });
  refuse_differences(comm, loaded.config);
  ResumeState resume = find_resume_state(comm, loaded.config);
  report_lost_before(comm, resume);
  adopt_choices(loaded, resume);
  RankPeerGroup peers(comm);
  comm.note_phase(Phase::kLoading);
  const Experiment experiment = make_experiment(loaded, peers, resume.schema);
  RunPlan plan;
  std::unique_ptr<Watch> watch;
  bool over = false;
  agree(comm, [&] {
    refuse_too_large(*experiment.model);
    plan = experiment.plan(comm.size(), ranks_per_node);
    refuse_too_large(plan, comm);
    refuse_changes(experiment.config, *experiment.train, resume);
    over = is_over(experiment.config, plan, resume);
    if (!over) refuse_length(experiment.config, plan, resume);
    watch = std::make_unique<Watch>(comm, experiment, resume);
  });
  refuse_different_data(comm, experiment.sources());
  if (over) {
    spdlog::info(
        "the run in '{}' is complete: nothing to do; to train anew, name another run.dir, or give "
        "run.resume = \"restart\"",
        resume.directory.root.string());
    return 0;
  }

  watch->saving.texts = describing_texts(experiment, plan);
  const CheckpointReader* const checkpoint = resume.checkpoint.get();
  std::unique_ptr<Run> run;
  std::unique_ptr<Observer> observer = std::make_unique<SilentObserver>();
  try {
    agree(comm, [&] {
      if (comm.rank() != 0) return;
      prepare(resume, experiment.config);
      add_log_file(resume.directory.log());
      write_file_atomically(resume.directory.ranks(), places.table);
    });
    watchdog.meet_in(loaded.config.run.dir);
    log_notes(experiment.sources());
    log_doubts(comm, experiment, plan);
    announce(comm, experiment.config, plan, places);
    if (comm.rank() == 0) report_time_left(watch->left);
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

    run = std::make_unique<Run>(comm, experiment, plan);
    run->initialise_weights(checkpoint);
    run->load(checkpoint != nullptr ? checkpoint->header().progress.steps : 0);
    agree(comm,
          [&] { refuse_other_content(experiment.config, *experiment.train, run->fingerprint(), resume); });
    agree(comm, [&] {
      if (comm.rank() != 0) return;
      fill_directory(resume.directory, experiment, plan, watch->saving.texts);
      observer =
          std::make_unique<RunOutput>(experiment, plan, resume.metrics_bytes(), incomplete_before(resume));
    });
  } catch (const AgreedError&) {
    if (comm.rank() == 0) undo_preparation(resume);
    throw;
  }
  report_loaded(comm, plan, run->records());
  report_algorithm(run->algorithm(), loaded.config.distribute);
  log_resume(experiment.config, resume, comm.size(), run->algorithm());
  if (comm.rank() == 0) {
    log_rest(experiment, plan, resume);
    std::error_code ignored;
    std::filesystem::remove(resume.directory.summary(), ignored);  // until this run is at its end
  }
  if (checkpoint != nullptr && !resume.is_new) {
    watch->writer.found(checkpoint->header().progress.steps);
    if (comm.rank() == 0) note_checkpoints(experiment.config, resume);
  }
  watch->saving.header = {.progress = {},
                          .ranks = comm.size(),
                          .strategy = experiment.config.distribute.strategy,
                          .algorithm = run->algorithm(),
                          .data = describe_size(*experiment.train),
                          .fingerprint = run->fingerprint(),
                          .versions = versions()};

  RunDirectory results = resume.directory;  // rank 0's
  const auto save = [&](AlignedBuffer<Scalar>& stored) {
    const Model& model = *experiment.model;
    results = find_results_directory(resume, watch->saving.texts);
    save_model(results.model(), {.layout = &model.stored_layout(), .values = stored.span()}, model.input());
  };
  TrainingResult result;
  try {
    result = run->train({.observer = *observer,
                         .control = watch->control,
                         .saving = &watch->saving,
                         .checkpoint = checkpoint});
  } catch (const AgreedError&) {
    AlignedBuffer<Scalar> last_good = run->stored();
    if (comm.rank() == 0) {
      LostFiles lost(*observer, watch->writer, resume_command(experiment.config));
      lost.attempt("model.safetensors", [&] { save(last_good); });
      if (!lost.empty()) spdlog::warn("lost: {}", lost.describe());
      if (results.root != resume.directory.root) {
        spdlog::warn("{}: model.safetensors is in '{}'",
                     describe_lost_directory(resume.directory, resume.lock), results.root.string());
      }
    }
    throw;
  }
  LostFiles lost(*observer, watch->writer, resume_command(experiment.config));
  if (!result.stopped.empty()) return report_stop(comm, experiment.config, resume, result, *watch, lost);
  AlignedBuffer<Scalar> stored = run->stored();
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    const bool saved = lost.attempt("model.safetensors", [&] { save(stored); });
    sync_metrics(results);
    const bool summed =
        lost.attempt("summary.json", [&] { write_summary(results, result, run->algorithm(), lost.names()); });
    report_result(result);
    if (saved && summed) refuse_lost_files(resume, results);
    report_written(results);
    if (!lost.empty()) throw DataError("training is complete, but this was lost: " + lost.describe());
  });
  return 0;
}

}  // namespace lockstep
