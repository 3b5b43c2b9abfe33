#include "run_watch.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "run_files.h"

namespace lockstep {
namespace {

// `gone`: seconds since this program was started.
TimeLeft time_left(const RunOptions& run, double gone) {
  if (!run.time_limit.empty()) {
    return {.seconds = parse_time_limit("run.time_limit", run.time_limit) - gone, .warning = {}};
  }
  const std::optional<std::string> end = environment_text("SLURM_JOB_END_TIME");
  if (!end) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return job_time_left(*end, std::chrono::duration<double>(now).count());
}

}  // namespace

RunWatch::RunWatch(Communicator& comm, const Experiment& experiment, const ResumeState& resume,
                   const RunRequest& request)
    : left(time_left(experiment.config.run, request.seconds_gone)),
      every(parse_interval("checkpoint.every", experiment.config.checkpoint.every)),
      control(comm, {.stop_file = resume.directory.stop(),
                     .further_stop_files = request.stop_files,
                     .checkpoint_seconds = every.seconds,
                     .seconds_left = left.seconds,
                     .last_checkpoint = [this] { return writer.last_seconds(); }}),
      writer(comm, checkpoint_directory(experiment.config, resume.directory),
             experiment.config.checkpoint.keep, checkpoint_hooks(experiment.config, resume)),
      saving{.writer = writer, .every = every, .wait = experiment.config.checkpoint.wait} {
  const Config& config = experiment.config;
  if (!has_validation(config)) return;
  const bool has_accuracy = experiment.loss->targets() != TargetKind::kValue;
  const Measure measure(config.train.early_stopping_metric, experiment.metrics->names(), has_accuracy);
  if (keeps_best(config)) saving.best.emplace(measure);
  if (follows_evaluations(config.schedule)) plateau.emplace(measure, config.schedule);
  if (config.train.early_stopping.empty()) return;
  early_stopping.emplace(measure, Patience("train.early_stopping", config.train.early_stopping),
                         config.train.early_stopping_min_delta);
}

void report_time_left(const TimeLeft& left) {
  if (!left.warning.empty()) log_warning("{}", left.warning);
  if (!left.seconds || !std::isfinite(*left.seconds)) return;
  log_info("time limit: the run saves itself and stops within {}", human_seconds(*left.seconds));
}

}  // namespace lockstep
