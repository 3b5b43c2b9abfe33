#include "run_length.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Keys that the learning rate follows, beside the length of the run.
constexpr std::array kRateKeys{"train.lr",          "train.lr_scaling",   "train.lr_reference_batch",
                               "train.schedule",    "train.warmup",       "train.warmup_from",
                               "train.decay_every", "train.decay_factor", "train.decay_power",
                               "train.end_lr",      "train.global_batch", "train.per_replica_batch",
                               "train.milestones",  "train.warmup_share", "train.decay_share"};

// Steps of the newest checkpoint; 0 if there is none.
Index saved_steps(const ResumeState& resume) {
  return resume.checkpoint ? resume.checkpoint->header().progress.steps : 0;
}

std::string describe_length(const TrainOptions& train, const RunPlan& plan) {
  const std::string key = train.steps > 0     ? fmt::format("train.steps = {}", train.steps)
                          : train.samples > 0 ? fmt::format("train.samples = {}", train.samples)
                                              : fmt::format("train.epochs = {}", train.epochs);
  return fmt::format("with {}, at {} sample{} a step, the run has {} step{}", key,
                     with_commas(plan.step_batch), plan.step_batch == 1 ? "" : "s", with_commas(plan.steps),
                     plan.steps == 1 ? "" : "s");
}

// The plan of the config that the run began with, if it can be planned: data and ranks may differ now.
std::optional<RunPlan> plan_before(const Experiment& experiment, const ResumeState& resume) {
  try {
    return experiment.plan(*resume.config, resume.checkpoint->header().ranks, {});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// Why the learning rate is another one.
std::vector<std::string> reasons(Config now, const RunPlan& plan, Config before, const RunPlan& old) {
  std::vector<std::string> all;
  const std::vector<Option> new_options = declare_options(now, known_names());
  const std::vector<Option> old_options = declare_options(before, known_names());
  for (std::size_t i = 0; i < new_options.size(); ++i) {
    const Option& option = new_options[i];
    if (std::ranges::find(kRateKeys, option.key) == kRateKeys.end()) continue;
    if (option.text() == old_options[i].text()) continue;
    all.push_back(fmt::format("{} was {}, is {}", option.key, old_options[i].text(), option.text()));
  }
  if (plan.steps != old.steps) {
    all.push_back(fmt::format("the schedule now ends at step {}, not {}", with_commas(plan.steps),
                              with_commas(old.steps)));
  }
  if (all.empty()) all.emplace_back("the run goes through its data in other steps");
  return all;
}

}  // namespace

// The lengths are compared too: asynchronous workers make other numbers of steps of the same length where
// they are others, and a run that ended early is over unless it may now go on for longer.
bool is_over(const Config& config, const RunPlan& plan, const ResumeState& resume) {
  if (!resume.completed_steps) return false;
  const Index done = *resume.completed_steps;
  if (done < saved_steps(resume)) return false;  // it was made longer, and has not ended since
  const TrainOptions& before = resume.config->train;
  const TrainOptions& now = config.train;
  const bool same_end = before.early_stopping == now.early_stopping &&
                        before.early_stopping_min_delta == now.early_stopping_min_delta;
  return done == plan.steps || (same_end && before.epochs == now.epochs && before.steps == now.steps &&
                                before.samples == now.samples && before.global_batch == now.global_batch &&
                                before.per_replica_batch == now.per_replica_batch);
}

void refuse_length(const Config& config, const RunPlan& plan, const ResumeState& resume) {
  const Index saved = saved_steps(resume);
  const Index done = std::max(saved, resume.completed_steps.value_or(0));
  const std::string from =
      (resume.checkpoint ? resume.checkpoint->directory() : resume.directory.root).string();
  if (done > plan.steps) {
    throw ConfigError(fmt::format(
        "'{}' has made {} steps already, but {}: it cannot go on. Give a length of at least {} steps, or {}",
        from, with_commas(done), describe_length(config.train, plan), with_commas(done),
        resume.is_new ? "name an earlier checkpoint in run.resume"
                      : "begin again with run.resume = \"restart\" or in another run.dir"));
  }
  if (resume.completed_steps && saved == 0) {
    throw ConfigError(fmt::format(
        "the run in '{}' is complete after {} steps, and has no checkpoint from which it could go on for "
        "longer. Begin again with run.resume = \"restart\", or start another run.dir from its weights with "
        "train.init = \"{}\"",
        resume.directory.root.string(), with_commas(done), resume.directory.model().string()));
  }
}

void log_rest(const Experiment& experiment, const RunPlan& plan, const ResumeState& resume) {
  if (!resume.checkpoint) return;
  const Index done = saved_steps(resume);
  if (done == plan.steps) {
    log_info("all {} steps are made: what is left is the evaluation and the files of the end",
             with_commas(done));
    return;
  }
  const std::optional<RunPlan> old = plan_before(experiment, resume);
  if (!old) return;
  const Config& before = *resume.config;
  const Schedule old_schedule(before.schedule, old->whole_run(), old->step_batch);
  const Schedule schedule(experiment.config.schedule, plan.whole_run(), plan.step_batch);
  const auto shown = [](double rate) { return fmt::format("{:.3g}", rate); };
  const std::string next = shown(schedule.lr(plan.before(done)));
  if (next == shown(old_schedule.lr(old->before(done)))) return;
  const std::string last = shown(old_schedule.lr(old->before(done - 1)));
  log_warning("the learning rate {}{} with step {}, since {}",
              last == next ? "stays at " : fmt::format("goes from {} to ", last), next, with_commas(done + 1),
              fmt::join(reasons(experiment.config, plan, before, *old), ", and "));
}

}  // namespace lockstep
