#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "announcement.h"
#include "app/commands.h"
#include "app/runs/run_views.h"
#include "app/setup/outputs.h"
#include "app/setup/rank_placement.h"
#include "app/setup/run_config.h"
#include "app/setup/stage_choice.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/report/live/run_output.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/run_record.h"
#include "resume_state.h"
#include "run.h"
#include "run_files.h"

namespace lockstep {
namespace {

// A part of the training data has no files of its own.
std::vector<RunData> data_of(const Experiment& experiment) {
  std::vector<RunData> data;
  for (const auto& [kind, source] :
       {std::pair{"training", experiment.train.get()}, std::pair{"validation", experiment.validation.get()},
        std::pair{"test", experiment.test.get()}}) {
    if (source == nullptr || (!data.empty() && source->files() == data.front().files)) continue;
    data.push_back({.kind = kind,
                    .name = source->info().name,
                    .files = source->files(),
                    .whole = experiment.config.data.memory == MemoryMode::kLoad});
  }
  return data;
}

// One run, phase by phase: open, plan, announce, load, train, finish.
class TrainCommand {
 public:
  TrainCommand(Communicator& comm, RankPlacement placement, const RunRequest& request)
      : comm_(comm), peers_(comm), placement_(std::move(placement)), request_(request) {}

  // *Collective.* Errors: AgreedError.
  RunOutcome run(Config config) {
    open(std::move(config));
    if (!make_plan()) return {};
    begin();
    try {
      TrainingResult result = train();
      return {.exit_code = result.stopped.empty() ? finish(result) : stop(result), .paused = result.paused};
    } catch (const AgreedError& error) {
      end_record(RunState::kFailed, error.what(), error.exit_code(), observer_->progress());
      throw;
    }
  }

 private:
  bool first() const { return comm_.rank() == 0; }
  const Config& config() const { return experiment_.config; }

  // Finds what run.dir has of an earlier start, opens the data sets and builds the model.
  void open(Config config) {
    agree(comm_, [&] {
      error_if(config.run.dir.empty(),
               "run.dir is missing: give the directory in which the run is to be kept (--run.dir runs/NAME)");
      refuse_missing_precision(config);
    });
    refuse_differences(comm_, config);
    resume_ = find_resume_state(comm_, config);
    report_lost_before(comm_, resume_);
    note_phase(Phase::kLoading);
    experiment_ = make_experiment(complete(std::move(config), resume_), peers_, resume_.schema);
  }

  // False if the run that is resumed has done all steps of the plan already.
  bool make_plan() {
    const std::vector<Index> nodes = node_sizes(comm_, config().debug.ranks_per_node);
    const double stated = config().distribute.memory_per_rank;
    const MemoryLimit limit = smallest_limit(
        comm_,
        memory_of_rank(stated, std::ranges::count(placement_.host_of, at(placement_.host_of, comm_.rank()))));
    bool complete = false;
    agree(comm_, [&] {
      division_ = divide_as_needed(experiment_, {.world = comm_.size(), .node_sizes = nodes, .limit = limit});
      const StageGrid grid(comm_.size(), std::max<Index>(1, std::ssize(experiment_.stages)),
                           config().distribute.placement);
      const Index stage = grid.stage_of(comm_.rank());
      refuse_too_large(experiment_.model_of(stage));
      plan_ = experiment_.plan(comm_.size(), nodes);
      plan_.enter_stage(stage);
      try {
        refuse_too_large(plan_, stated, comm_.rank() >= plan_.ranks() - plan_.dist.servers);
      } catch (const ConfigError& error) {
        if (division_.empty()) throw;
        throw ConfigError("{}\n{}", error.what(), fmt::join(division_, "\n"));
      }
      refuse_changes(config(), *experiment_.train, resume_);
      complete = is_over(config(), plan_, resume_);
      if (!complete) refuse_length(config(), plan_, resume_);
      parse_trace("report.trace", config().report.trace);
      watch_ = std::make_unique<RunWatch>(comm_, experiment_, resume_, request_);
    });
    refuse_different_data(comm_, experiment_.sources());
    if (request_.look_at) request_.look_at(data_of(experiment_));
    if (complete) {
      log_info(
          "the run in '{}' is complete: nothing to do; to train anew, name another run.dir, or give "
          "run.resume = \"restart\"",
          resume_.directory.root.string());
      if (first() && !resume_.directory.is_held()) tidy_up();
    }
    return !complete;
  }

  // A run that was killed between its summary and its page.
  void tidy_up() {
    remove_partial_files(resume_.directory);
    const bool has_page = is_there(resume_.directory.report());
    if (config().report.html && !has_page) write_run_page(resume_.directory);
  }

  // From here on the directory is written to; a start that fails leaves it as it was.
  void begin() {
    watch_->saving.texts = describing_texts(experiment_, plan_);
    try {
      agree_on_first(comm_, [&] {
        prepare(resume_, config());
        add_log_file(resume_.directory.log());
        write_file_atomically(resume_.directory.ranks(), placement_.table);
        if (resume_.is_new) begin_record();
      });
      announce_run();
      load();
      agree_on_first(comm_, [&] {
        fill_directory(resume_.directory, experiment_, plan_, watch_->saving.texts);
        if (!record_) begin_record();
        RunOutputSettings settings = output_settings(experiment_, plan_);
        settings.record = record_.get();
        settings.losses = &losses_;
        observer_ = std::make_unique<RunOutput>(std::move(settings),
                                                OutputStart{.progress = resume_.saved(),
                                                            .metrics_bytes = resume_.metrics_bytes(),
                                                            .incomplete = incomplete_before(resume_)});
      });
    } catch (const AgreedError&) {
      record_.reset();
      if (first()) undo_preparation(resume_);
      throw;
    }
    report_start();
  }

  // Rank 0. The record of a run that is resumed stays until the new start is sure to go on.
  void begin_record() {
    record_ = std::make_unique<RunRecordFile>(first_record(experiment_, plan_, placement_, resume_),
                                              [this] { return resume_.lock.whereabouts(); });
  }

  // A record that cannot be written is lost like other files: the next start finds a run that was killed.
  void end_record(RunState state, const std::string& reason, int exit_code, const Progress& done) {
    if (!record_ || record_->ended()) return;
    try {
      record_->end(resume_.lock.whereabouts().value_or(resume_.directory.root), [&](RunRecord& record) {
        record.state = state;
        record.reason = reason;
        record.exit_code = exit_code;
        record.add_progress(done);
      });
    } catch (const Error&) {
    }
  }

  void announce_run() {
    const DistOptions& distribute = config().distribute;
    constexpr std::size_t kFewLines = 12;  // with the plan they leave a line of 24 for the first number
    log_notes(experiment_.sources(), config().run.plan == PlanStyle::kFull ? kAllLines : kFewLines);
    const Index helpers = distribute.progress_thread && comm_.size() > 1 ? 1 : 0;
    const std::string few_cores =
        few_cores_warning(gather_numbers(comm_, cores_at_hand()), plan_.dist.threads + helpers);
    if (!first()) return;
    for (const std::string& doubt : find_doubts(experiment_.fit(*experiment_.train), plan_))
      log_warning("{}", doubt);
    padding_ = describe_padding(experiment_, plan_.sampling);
    if (!padding_.text.empty()) log_info("{}", padding_.text);
    announce(config(), plan_, placement_, resume_.is_new);
    for (const std::string& reason : division_) log_info("{}", reason);
    warn_of_memory(plan_);
    const TimeLeft& left = watch_->left;
    if (!left.warning.empty()) log_warning("{}", left.warning);
    if (left.seconds && std::isfinite(*left.seconds))
      log_info("time limit: the run saves itself and stops within {}", human_seconds(*left.seconds));
    if (!few_cores.empty()) log_warning("{}", few_cores);
    if (plan_.micro_batches == 1) {
      log_warning(
          "a group has one replica, so one stage computes while the others wait: raise train.replicas{} to "
          "several for each group",
          plan_.lockstep ? "" : ", or train.accumulate,");
    }
    if (distribute.reduction != Reduction::kOrdered || config().given.contains("train.replicas")) return;
    log_warning(
        "train.replicas is not given, so it follows the number of ranks, and another number gives other "
        "bits; for the same bits anywhere set train.replicas = {}",
        plan_.sampling.replicas);
  }

  void load() {
    run_ = std::make_unique<Run>(comm_, experiment_, plan_);
    run_->initialise_weights(resume_.checkpoint.get());
    run_->load(resume_.saved().steps);
    agree(comm_, [&] { refuse_other_content(config(), *experiment_.train, run_->fingerprint(), resume_); });
  }

  void report_start() {
    report_loaded(comm_, plan_, run_->records(), config().run.plan);
    const std::vector<Index> rows = gather_numbers(comm_, run_->records().rows());
    if (record_)
      record_->change([&](RunRecord& record) {
        record.launch.algorithm = run_->algorithm();
        record.data["rows"] = rows;
        if (!run_->class_weights().empty()) record.data["class_weights"] = run_->class_weights();
        if (!padding_.text.empty()) record.data["train"].push_back(padding_.figures);
      });
    if (!run_->algorithm().empty()) {
      const DistOptions& distribute = config().distribute;
      log_info("exchange algorithm: {}{}", run_->algorithm(),
               distribute.algorithm != kAutoAlgorithm ? ""
               : distribute.calibrate                 ? ", the fastest here by calibration"
                                                      : ", by rule");
    }
    log_resume(config(), resume_, plan_, run_->algorithm());
    for (const Evaluation* each : run_->evaluations()) {
      if (each == nullptr || each->naive().naive.empty()) continue;  // as on other ranks
      log_info("{}", each->naive().describe_naive(each->split(), !each->info().scaled_label.empty()));
      record_->change([&](RunRecord& record) {
        record.forecasts[to_string(each->split())] = json_of_errors(each->naive());
      });
    }
    if (first()) {
      log_rest(experiment_, plan_, resume_);
      remove_if_there(resume_.directory.report());
      remove_if_there(resume_.directory.evaluation());
      remove_if_there(resume_.directory.importance());
      remove_if_there(resume_.directory.summary());  // written again at the end
    }
    if (!resume_.checkpoint || resume_.is_new) return;
    watch_->writer.found(resume_.saved().steps);
    if (first()) note_checkpoints(config(), resume_);
  }

  TrainingResult train() {
    const auto versions = build_facts();
    watch_->saving.header = {.progress = {},
                             .ranks = comm_.size(),
                             .strategy = config().distribute.strategy,
                             .algorithm = run_->algorithm(),
                             .data = describe_size(*experiment_.train),
                             .fingerprint = run_->fingerprint(),
                             .versions = {versions.begin(), versions.end()}};
    results_ = resume_.directory;
    tracer_ = start_trace(comm_, experiment_, plan_, resume_.saved().steps);
    TrainingContext training = run_->training(*observer_, watch_->control);
    training.saving = &watch_->saving;
    if (watch_->early_stopping) training.early_stopping = &*watch_->early_stopping;
    if (watch_->plateau) training.plateau = &*watch_->plateau;
    training.tracer = tracer_.get();
    training.checkpoint = resume_.checkpoint.get();
    if (request_.pause_share < 1) {
      training.settings.pause_after =
          static_cast<Index>(std::ceil(request_.pause_share * static_cast<double>(plan_.steps)));
    }
    training.settings.hosts = placement_.host_of;
    try {
      TrainingResult result = Trainer(training).run();
      finish_trace(comm_, std::move(tracer_), resume_.directory);
      return result;
    } catch (const AgreedError& error) {
      save_last_good_weights();
      if (error.exit_code() != kExitTraining || run_->label_doubt().empty()) throw;
      throw AgreedError(fmt::format("{}. But first: {}", error.what(), run_->label_doubt()), kExitTraining);
    }
  }

  // *Collective.* Errors, on rank 0 alone: DataError.
  void save_model_of(std::span<Scalar> stored, const ModelFacts& facts = {}) {
    run_->save_model(stored, facts, [this] {
      results_ = find_results_directory(resume_, watch_->saving.texts);
      return results_.model();
    });
  }

  void save_last_good_weights() {
    AlignedBuffer<Scalar> last_good = run_->stored();
    LostFiles lost(*observer_, watch_->writer, resume_command(config()));
    lost.attempt("model.safetensors", [&] { save_model_of(last_good.span()); });
    if (!first()) return;
    if (!lost.empty()) log_warning("lost: {}", lost.describe());
    if (results_.root == resume_.directory.root) return;
    log_warning("{}: model.safetensors is in '{}'", describe_lost_directory(resume_.directory, resume_.lock),
                results_.root.string());
  }

  int stop(const TrainingResult& result) {
    const LostFiles lost(*observer_, watch_->writer, resume_command(config()));
    const std::string& failure = watch_->writer.last_failure();
    const std::string how =
        fmt::format("after {} by {}", plural(result.progress.steps, "step"), result.stopped);
    agree_on_first(comm_, [&] {
      const std::string mishap = describe_lost_directory(resume_.directory, resume_.lock);
      if (mishap.empty()) return;
      throw DataError("stopped {}{}, but {}{}", failure.empty() ? "and saved " : "", how, mishap,
                      failure.empty() ? "" : "; the last checkpoint is lost");
    });
    if (!failure.empty()) {
      throw AgreedError(fmt::format("stopped {}, but this was lost: {}", how, lost.describe()), kExitData);
    }
    if (first()) {
      log_info("stopped {}; {} goes on from there{}", how, resume_command(config()),
               lost.empty() ? "" : fmt::format("; lost: lines of {}", fmt::join(lost.names(), " and ")));
      remove_if_there(resume_.directory.stop());
    }
    end_record(RunState::kStopped, how, kExitStopped, result.progress);
    return kExitStopped;
  }

  // Rank 0. Errors: DataError.
  void record_end(const TrainingResult& result, nlohmann::ordered_json summary,
                  const std::vector<std::string>& lost) {
    record_->end(results_.root, [&](RunRecord& record) {
      record.state = !lost.empty()           ? RunState::kFailed
                     : !result.early.empty() ? RunState::kStoppedEarly
                                             : RunState::kDone;
      record.reason = lost.empty() ? result.early : fmt::format("lost: {}", fmt::join(lost, ", "));
      record.exit_code = lost.empty() ? 0 : kExitData;
      record.progress = result.progress;
      record.seconds = result.seconds;
      record.kept = {.best = result.best.has_value(),
                     .step = result.best ? result.best->progress.steps : result.progress.steps,
                     .average = result.average};
      for (const EvalMetrics& each : result.evaluations) {
        record.figures[to_string(each.split)] = figures_of(metrics_line(evaluation_json(each)), record.kept);
        if (!each.forecast.naive.empty())
          record.forecasts[to_string(each.split)] = json_of_errors(each.forecast);
      }
      record.result = std::move(summary);
    });
  }

  // Rank 0. The page was made from the record, which now gets to know what there is.
  void report_written() {
    const std::vector<std::string> files = written_files(results_);
    try {
      record_->end(results_.root, [&](RunRecord& record) { record.files = files; });
    } catch (const Error& error) {
      log_warning("run.json does not list what was written: {}", error.what());
    }
    log_info("written: {} with {}", results_.root.string(), fmt::join(files, ", "));
  }

  int finish(TrainingResult& result) {
    const std::string doubt = run_->doubt_learning(result, losses_);
    if (first() && !doubt.empty()) log_warning("{}", doubt);
    for (const EvalMetrics& each : result.evaluations) {
      if (each.forecast.naive.empty()) continue;
      write_log(each.forecast.model_is_best() ? LogLevel::kInfo : LogLevel::kWarning,
                each.forecast.describe_model(each.split));
    }
    LostFiles lost(*observer_, watch_->writer, resume_command(config()));
    AlignedBuffer<Scalar> last = run_->stored();
    AlignedBuffer<Scalar> stored =
        result.best_weights.size() > 0 ? std::move(result.best_weights) : std::move(last);
    const std::optional<ChosenThreshold> threshold =
        run_->choose_threshold(stored.span(), result.evaluations);
    std::optional<EvaluationDetails> details;
    if (config().report.html) details = run_->describe_evaluation(stored.span());
    ModelFacts facts = threshold_facts(threshold);
    const std::string positive = experiment_.positive_class();
    if (!positive.empty()) facts[kPositiveFact] = positive;
    if (result.calibration) facts[kTemperatureFact] = fmt::format("{}", result.calibration->temperature);
    agree(comm_, [&] {
      const bool saved = lost.attempt("model.safetensors", [&] { save_model_of(stored.span(), facts); });
      if (!first()) return;
      sync_metrics(results_);
      const auto summary = [&] {
        return summary_json({.result = result,
                             .algorithm = run_->algorithm(),
                             .config = config_digest(config()),
                             .hosts = placement_.host_names(),
                             .threshold = threshold,
                             .lost = lost.names()});
      };
      const bool summed = lost.attempt(
          "summary.json", [&] { write_file_atomically(results_.summary(), indented(summary())); });
      const bool recorded = lost.attempt("run.json", [&] { record_end(result, summary(), lost.names()); });
      report_result(result, tokens_of_sample(experiment_));
      report_kept(result, positive);
      report_calibration(result);
      report_threshold(threshold, positive);
      if (saved && summed && recorded) refuse_lost_files(resume_, results_);
      if (recorded && details) write_evaluation_file(results_, *details);
      if (recorded && config().report.html) write_run_page(results_);
      report_written();
      if (!lost.empty()) throw DataError("training is complete, but this was lost: " + lost.describe());
    });
    return 0;
  }

  Communicator& comm_;
  RankPeerGroup peers_;
  RankPlacement placement_;
  const RunRequest& request_;
  ResumeState resume_;
  Experiment experiment_;
  RunPlan plan_;
  Note padding_;                       // in batches, on rank 0
  std::vector<std::string> division_;  // why the model is divided as it is; empty if the config says how
  std::unique_ptr<RunWatch> watch_;
  std::unique_ptr<Run> run_;
  std::unique_ptr<StepTracer> tracer_;     // null without report.trace
  std::unique_ptr<RunRecordFile> record_;  // null on other ranks
  StepLosses losses_;                      // of rank 0
  std::unique_ptr<Observer> observer_ = std::make_unique<Observer>();
  RunDirectory results_;  // rank 0: where the results are written, run.dir unless that was moved
};

}  // namespace

RunOutcome train_run(Communicator& comm, const CommandLine& line, const ConfigText& text,
                     const RunRequest& request) {
  RankPlacement placement = find_placement(comm);
  Config config = agree(comm, [&] {
    return load_training_config(line, text, {.ranks = comm.size(), .hosts = placement.hosts()});
  });
  const Watchdog watchdog(comm, config.comm, config.debug.ranks_per_node);
  return TrainCommand(comm, std::move(placement), request).run(std::move(config));
}

int train_command(Communicator& world, const CommandLine& line) {
  return train_run(world, line, read_config_together(world, line.text("config"))).exit_code;
}

}  // namespace lockstep
