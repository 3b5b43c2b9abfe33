#include "announcement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "app/setup/catalogs.h"
#include "app/setup/startup.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/report/live/run_output.h"
#include "lockstep/report/tables/tables.h"
#include "run_files.h"

namespace lockstep {
namespace {

std::string describe_length(const TrainOptions& train, const RunPlan& plan) {
  const std::string key = train.steps > 0     ? fmt::format("train.steps = {}", train.steps)
                          : train.samples > 0 ? fmt::format("train.samples = {}", train.samples)
                                              : fmt::format("train.epochs = {}", train.epochs);
  return fmt::format("with {}, at {} a step, the run has {}", key, plural(plan.step_batch, "sample"),
                     plural(plan.steps, "step"));
}

// The plan of the config that the run began with, if it can be planned: data and ranks may differ now.
std::optional<RunPlan> plan_before(const Experiment& experiment, const ResumeState& resume) {
  try {
    return experiment.plan(*resume.config, resume.checkpoint->header().ranks, {});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// The settings that changed the learning rate.
std::vector<std::string> reasons(const Config& now, const RunPlan& plan, const Config& before,
                                 const RunPlan& old) {
  std::vector<std::string> all;
  for (const Difference& changed : find_differences(before, now, known_options())) {
    if (!changed.option.sets_rate) continue;
    all.push_back(fmt::format("{} was {}, is {}", changed.option.key, changed.before, changed.now));
  }
  if (plan.steps != old.steps) {
    all.push_back(fmt::format("the schedule now ends at step {}, not {}", with_commas(plan.steps),
                              with_commas(old.steps)));
  }
  if (all.empty()) all.emplace_back("the run goes through its data in other steps");
  return all;
}

// Bytes of packed records that are looked at.
constexpr Index kMaxBytes = Index{64} << 20;

// Chunks at even distances, so that all parts of the files are seen.
std::vector<Index> chosen_chunks(const RecordSource& source) {
  const auto chunks = std::ssize(source.chunks());
  const Index bytes = source.info().rows * source.info().record_bytes;
  const Index every = std::max<Index>(1, divide_up(bytes, kMaxBytes));
  std::vector<Index> chosen;
  for (Index chunk = 0; chunk < chunks; chunk += every) chosen.push_back(chunk);
  return chosen;
}

std::vector<ClassCounts> count_classes(const Experiment& experiment, const Sampler& sampler, Index replicas) {
  const RecordSource& source = *experiment.train;
  const DatasetInfo& info = source.info();
  const std::unique_ptr<ChunkReader> reader = source.reader(experiment.target_rule());
  std::vector<ClassCounts> counts(static_cast<std::size_t>(replicas));
  std::vector<std::byte> packed;
  std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
  std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
  const auto target_columns = static_cast<std::size_t>(info.target_columns);
  Matrix x(features.data(), 1, info.features.size());
  Matrix targets(labels.data(), 1, info.label_columns());
  for (const Index chunk : chosen_chunks(source)) {
    const Range ids = at(source.chunks(), chunk).records;
    packed.resize(static_cast<std::size_t>(ids.size() * info.record_bytes));
    reader->read(chunk, packed);
    for (Index id = ids.begin; id < ids.end; ++id) {
      const std::byte* record = packed.data() + (id - ids.begin) * info.record_bytes;
      source.unpack({&id, 1}, {&record, 1}, x, targets);
      const auto replica = static_cast<std::size_t>(sampler.replicas_of(id).begin);
      counts[replica][class_of(std::span(labels).first(target_columns))] += 1;
    }
  }
  return counts;
}

// The arguments of this process, as a shell shows them.
std::string command_of_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command{std::istreambuf_iterator<char>(file), {}};
  std::ranges::replace(command, '\0', ' ');
  if (!command.empty()) command.pop_back();
  return command;
}

// "AMD EPYC 7B13"; "" where the system does not tell.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name"))
      return std::string(trimmed(std::string_view(line).substr(line.find(':') + 1)));
  }
  return "";
}

Launch launch_of(const Config& config, const RunPlan& plan, const RankPlacement& placement) {
  return {.command = command_of_process(),
          .time = Heartbeat::now().time,
          .replicas = plan.sampling.replicas,
          .threads = plan.dist.threads,
          .precision = describe_precision(config),
          .placement = placement.summary,
          .cpu = cpu_name(),
          .hosts = placement.host_of,
          .cores = placement.cores};
}

// By set, what its notes tell.
nlohmann::ordered_json figures_of_data(const Experiment& experiment) {
  nlohmann::ordered_json json{{"targets", experiment.train->info().target_columns}};
  for (const auto& [set, source] :
       {std::pair{"train", experiment.train.get()}, std::pair{"validation", experiment.validation.get()},
        std::pair{"test", experiment.test.get()}}) {
    if (source == nullptr) continue;
    for (const Note& note : source->notes()) {
      if (!note.figures.is_null()) json[set].push_back(note.figures);
    }
  }
  return json;
}

}  // namespace

RunRecord first_record(const Experiment& experiment, const RunPlan& plan, const RankPlacement& placement,
                       const ResumeState& resume) {
  const Config& config = experiment.config;
  RunRecord record{.version = std::string(build_info().version),
                   .commit = std::string(build_info().commit),
                   .config = config_digest(config),
                   .idle_keys = idle_keys(repeating_config(experiment, plan)),
                   .launch = launch_of(config, plan, placement),
                   .plan = plan_record(plan, *experiment.model),
                   .measure = config.train.early_stopping_metric,
                   .keeps_best = keeps_best(config),
                   .scaled_label = experiment.train->info().scaled_label,
                   .positive = experiment.positive_class(),
                   .data = figures_of_data(experiment)};
  try {
    const auto before = resume.is_new ? std::nullopt : read_run_record(resume.directory);
    if (before) {
      record.launch.resumed_at = before->launch.resumed_at;
      record.warnings = before->warnings;
      record.more_warnings = before->more_warnings;
    }
  } catch (const DataError& error) {
    log_warning("run.json of the start before cannot be read: {}", error.what());
  }
  if (resume.checkpoint) record.launch.resumed_at.push_back(resume.saved().steps);
  return record;
}

void announce(const Config& config, const RunPlan& plan, const RankPlacement& placement, bool is_new) {
  log_info("{}", launch_of(config, plan, placement).describe());
  const bool full = config.run.plan == PlanStyle::kFull;
  std::string text = full ? plan_table(std::span(&plan, 1)) : plan_summary(plan);
  // The log ends the line itself; what a step is was told when the run began.
  text.resize(is_new || full ? text.size() - 1 : text.find('\n'));
  log_info("plan:{}{}", full ? "\n" : " ", text);
}

void report_loaded(Communicator& comm, const RunPlan& plan, const Records& train, PlanStyle style) {
  constexpr std::size_t kMaxLines = 64;
  const std::size_t shown = style == PlanStyle::kFull ? kMaxLines : 4;
  const Range replicas = plan.dist.hosted_by(plan.grid().group_of(comm.rank()));
  const std::string hosted = replicas.size() == 1
                                 ? fmt::format("replica {}", replicas.begin)
                                 : fmt::format("replicas {} to {}", replicas.begin, replicas.end - 1);
  const std::string holds =
      replicas.empty()    ? "serves"
      : train.rows() == 0 ? "needs no records: its stage gets what the stage before computes"
      : plan.sampling.stream
          ? fmt::format("streams {} ({})", plural(make_sampler(plan.sampling)->needed(replicas), "row"),
                        hosted)
          : fmt::format("loaded {}, {} ({})", plural(train.rows(), "row"), human_bytes(train.bytes()),
                        hosted);
  const std::vector<std::string> lines = gather_texts(comm, fmt::format("rank {} {}", comm.rank(), holds));
  for (std::size_t rank = 0; rank < std::min(lines.size(), kMaxLines); ++rank)
    write_log(rank < shown ? LogLevel::kInfo : LogLevel::kDebug, lines[rank]);
  if (lines.size() > shown)
    log_info("... and so on for {}", plural(std::ssize(lines) - Index(shown), "more rank"));
}

// The lengths are compared too: asynchronous workers make other numbers of steps of the same length where
// they are others, and a run that ended early is over unless it may now go on for longer.
bool is_over(const Config& config, const RunPlan& plan, const ResumeState& resume) {
  if (!resume.completed_steps) return false;
  const Index done = *resume.completed_steps;
  if (done < resume.saved().steps) return false;  // it was made longer, and has not ended since
  const TrainOptions& before = resume.config->train;
  const TrainOptions& now = config.train;
  const bool same_end = before.early_stopping == now.early_stopping &&
                        before.early_stopping_min_delta == now.early_stopping_min_delta;
  return done == plan.steps || (same_end && before.epochs == now.epochs && before.steps == now.steps &&
                                before.samples == now.samples && before.global_batch == now.global_batch &&
                                before.per_replica_batch == now.per_replica_batch);
}

void refuse_length(const Config& config, const RunPlan& plan, const ResumeState& resume) {
  const Index saved = resume.saved().steps;
  const Index done = std::max(saved, resume.completed_steps.value_or(0));
  const std::string from =
      (resume.checkpoint ? resume.checkpoint->directory() : resume.directory.root).string();
  error_if(done > plan.steps,
           "'{}' has made {} already, but {}: it cannot go on. Give a length of at least {}, or {}", from,
           plural(done, "step"), describe_length(config.train, plan), plural(done, "step"),
           resume.is_new ? "name an earlier checkpoint in run.resume"
                         : "begin again with run.resume = \"restart\" or in another run.dir");
  error_if(
      resume.completed_steps && saved == 0,
      "the run in '{}' is complete after {}, and has no checkpoint from which it could go on for "
      "longer. Begin again with run.resume = \"restart\", or start another run.dir from its weights with "
      "train.init = \"{}\"",
      resume.directory.root.string(), plural(done, "step"), resume.directory.model().string());
}

void log_rest(const Experiment& experiment, const RunPlan& plan, const ResumeState& resume) {
  if (!resume.checkpoint) return;
  const Index done = resume.saved().steps;
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

Note describe_padding(const Experiment& experiment, const SamplingOptions& sampling) {
  constexpr Index kProposed = 50;
  if (!experiment.train->info().has_lengths || sampling.stream) return {};
  const bool has_buckets = sampling.buckets.has_value();
  BucketOptions buckets = sampling.buckets.value_or(BucketOptions{nullptr, kProposed});
  if (!has_buckets) {
    try {
      buckets.lengths = std::make_shared<const std::vector<Scalar>>(experiment.train->lengths());
    } catch (const DataError&) {
      return {};  // it is reported by all ranks together when they load the records
    }
  }
  const auto share = [&](const std::optional<BucketOptions>& drawn_by) {
    SamplingOptions drawn = sampling;
    drawn.buckets = drawn_by;
    return 100 * padding_share(*make_sampler(drawn), *buckets.lengths);
  };
  const double with = share(buckets);
  const double without = share(std::nullopt);
  return {
      .text = fmt::format(
          "padding up to the longest record of a batch: {:.3g} % (drawn from the first epoch); {:.3g} % {}",
          has_buckets ? with : without, has_buckets ? without : with,
          has_buckets ? "without data.bucket_by_length"
                      : fmt::format("with data.bucket_by_length = {}", kProposed)),
      .figures = {{"batches", {{"buckets", buckets.batches}, {"with", with}, {"without", without}}}}};
}

std::string warn_of_uneven_shards(const Experiment& experiment, const SamplingOptions& sampling) {
  const bool by_chance = sampling.mode == DataMode::kFull || sampling.reshuffle != Reshuffle::kShard ||
                         (!sampling.stream && sampling.shard_order == ShardOrder::kShuffled) ||
                         sampling.replicas == 1;
  const OutputForm form = experiment.loss->form();
  if (by_chance || form.targets != TargetKind::kClass || form.positions > 0) return "";
  if (experiment.train->info().record_bytes == 0) return "";
  const auto sampler = make_sampler(sampling);
  return describe_uneven_shards(count_classes(experiment, *sampler, sampling.replicas));
}

}  // namespace lockstep
