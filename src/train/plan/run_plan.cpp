#include "lockstep/train/plan/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/replica_states.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

// Steps until `samples` are used: whole epochs, and then steps of the next one.
Index steps_for_samples(const RunPlan& plan, Index samples) {
  const Index whole = samples / plan.epoch_samples;
  const Index rest = samples % plan.epoch_samples;
  return whole * plan.steps_per_epoch + divide_up(rest, plan.step_batch);
}

Index run_steps(const TrainOptions& train, const RunPlan& plan) {
  // Beyond this, counts of samples would no longer be exact.
  constexpr double kMaxSamples = 1e17;
  const auto per_epoch = static_cast<double>(plan.steps_per_epoch);
  const auto batch = static_cast<double>(plan.step_batch);
  const double steps = train.steps > 0     ? static_cast<double>(train.steps)
                       : train.samples > 0 ? static_cast<double>(steps_for_samples(plan, train.samples))
                                           : std::ceil(train.epochs * per_epoch - 1e-9);
  error_if(steps * batch > kMaxSamples,
           "the run would take {:.3g} samples, expected at most {:.0e}; shorten train.epochs, "
           "train.steps or train.samples",
           steps * batch, kMaxSamples);
  return std::max<Index>(1, static_cast<Index>(steps));
}

bool weights_per_replica(const RunPlanRequest& request) {
  return local_sums(request.distribute) == LocalSums::kPerReplica;
}

// The first local step of the run (from 0), if replicas take local steps.
Index first_local_step(const RunPlanRequest& request, const RunPlan& plan) {
  if (!weights_per_replica(request)) return 0;
  const Duration together = parse_duration("distribute.local_after", request.distribute.local_after);
  const auto still_together = [&](Index step) {
    return together.measure(plan.before(step)) < together.value;
  };
  return first_index({0, plan.steps}, still_together);
}

// See RunPlan::averaged_from. Epochs are counted from 1.
Index first_averaged_step(const TrainOptions& train, const RunPlan& plan) {
  if (train.ema > 0) return 1;
  if (train.swa_from.empty()) return 0;
  const Duration from = parse_duration("train.swa_from", train.swa_from);
  error_if(from.value >= from.measure(plan.whole_run()),
           "train.swa_from is {}, and the run is over by then, after {} ({:.6g} epochs): give "
           "an earlier time, so that the ends of some epochs are averaged",
           in_quotes(train.swa_from), plural(plan.steps, "step"), plan.epochs);
  const double per_epoch = from.measure(plan.before(plan.steps_per_epoch));
  const auto epoch = static_cast<Index>(std::ceil(from.value / per_epoch - 1e-9));
  return std::min(std::max<Index>(1, epoch) * plan.steps_per_epoch, plan.steps);
}

// The largest learning rate that a step of the run takes. It rises, then falls: all steps of a short run are
// looked at, and a million of a long one.
double peak_lr(const Schedule& schedule, const RunPlan& plan) {
  const Index stride = std::max<Index>(1, plan.steps / 1'000'000);
  double peak = 0;
  for (Index step = 0; step < plan.steps; step += stride)
    peak = std::max(peak, schedule.lr(plan.before(step)));
  return peak;
}

// Each mode with the samples that one normalisation sees.
std::string plan_batch_norm(const RunPlanRequest& request, const SamplingOptions& sampling) {
  const Index per_replica = sampling.global_batch / sampling.replicas;
  const Index part = per_replica / std::min(request.train.accumulate, std::max<Index>(per_replica, 1));
  std::vector<std::string> modes;
  for (const ModelOp& op : request.model.ops()) {
    const BatchStatistics* statistics = op.layer->statistics();
    if (statistics == nullptr) continue;
    const BatchNormMode mode = statistics->mode();
    const Index samples = part * mode.normalised_with(0, sampling.replicas).size();
    const std::string text = fmt::format("{} ({} samples)", to_string(mode), with_commas(samples));
    if (std::ranges::find(modes, text) == modes.end()) modes.push_back(text);
  }
  return fmt::format("{}", fmt::join(modes, ", "));
}

SamplingOptions sampling_of(const RunPlanRequest& request, Index replicas) {
  SamplingOptions sampling{.rows = request.rows,
                           .replicas = replicas,
                           .global_batch = request.train.global_batch_of(replicas),
                           .mode = request.data.mode,
                           .tail = request.train.tail,
                           .seed = request.seed,
                           .shard_order = request.data.shard_order,
                           .reshuffle = request.data.reshuffle,
                           .starts = request.starts};
  if (request.streamed) {
    sampling.stream = {
        .chunks = request.streamed, .shard_by = request.data.shard_by, .window = request.data.shuffle_buffer};
  }
  if (request.lengths) {
    sampling.buckets = {.lengths = request.lengths, .batches = request.data.bucket_by_length};
  }
  return sampling;
}

// With asynchronous workers each worker's gradient is a step; with backup workers a step is made of several,
// and without those of the last.
void plan_steps(Index workers, RunPlan& plan) {
  const Index batch = plan.sampling.global_batch;
  const Index steps_per_batch = plan.steps_by_worker() ? workers : 1;
  plan.steps_per_epoch = plan.epoch.steps * steps_per_batch;
  plan.step_batch = (batch - batch / workers * plan.backup_workers) / steps_per_batch;
  const Index dropped = plan.epoch.samples / workers * plan.backup_workers;
  plan.epoch_samples = plan.epoch.samples - dropped;
}

}  // namespace

Progress RunPlan::before(Index step) const {
  const Index whole = step / steps_per_epoch;
  const Index within = std::min(step % steps_per_epoch * step_batch, epoch_samples);
  return {.steps = step,
          .samples = whole * epoch_samples + within,
          .epochs = static_cast<double>(step) / static_cast<double>(steps_per_epoch)};
}

bool RunPlan::averages_between(Index before, Index done) const {
  if (!averages() || ema > 0) return false;
  const Index last = done == steps ? steps : done / steps_per_epoch * steps_per_epoch;
  return last > before && last >= averaged_from;
}

double RunPlan::idle_share(Index with) const {
  return lockstep::idle_share(std::ssize(stages), with, chunks);
}

std::string RunPlan::describe_average() const {
  return ema > 0
             ? fmt::format("exponential average (train.ema {})", ema)
             : fmt::format("uniform average from step {} on (train.swa_from)", with_commas(averaged_from));
}

RunPlan make_run_plan(const RunPlanRequest& request) {
  const TrainOptions& train = request.train;
  const Index servers = count_servers(request.distribute);
  const Index workers = request.world - servers;
  const Index replicas = train.replicas_of(workers);
  RunPlan plan;
  plan.sampling = sampling_of(request, replicas);
  refuse_run(request, plan.sampling);
  check_sampling(plan.sampling);
  plan.dist = plan_ranks(request, request.model, replicas);
  plan.epoch = plan_epoch(plan.sampling);
  plan.strategy = request.distribute.strategy;
  plan.weighted = request.weighted;
  plan.of_positions = request.of_positions;
  plan.asynchronous = is_asynchronous(request.distribute);
  if (plan.asynchronous && request.distribute.mode == ServerMode::kBounded) {
    plan.max_ahead = request.distribute.staleness;
  }
  plan.backup_workers = plan.asynchronous ? request.distribute.backup_workers : 0;
  plan_steps(workers, plan);
  plan.steps = run_steps(train, plan);
  const Progress end = plan.before(plan.steps);
  plan.samples = end.samples;
  plan.epochs = end.epochs;
  plan.times_each_seen = static_cast<double>(plan.samples) / static_cast<double>(request.rows);

  const Schedule schedule(request.schedule, end, plan.step_batch);
  plan.lr_start = schedule.lr(plan.before(0));
  plan.lr_peak = peak_lr(schedule, plan);
  plan.lr_end = schedule.lr(plan.before(plan.steps - 1));

  plan.batch_norm = plan_batch_norm(request, plan.sampling);
  if (!train.early_stopping.empty()) {
    plan.early_stopping = fmt::format("after {} without a better {} of the validation set",
                                      train.early_stopping, train.early_stopping_metric);
  }
  if (follows_evaluations(request.schedule)) {
    plan.plateau = fmt::format("is multiplied by {} after each {} without a better {} of the validation set",
                               request.schedule.decay_factor, request.schedule.plateau_patience,
                               train.early_stopping_metric);
  }
  plan.multipliers = request.multipliers;
  // Only the last step of an epoch has fewer samples than the first.
  plan.single_values = single_values_of(request, plan.sampling, plan.epoch.steps - 1).replicas();
  plan.split_layers = std::ssize(divide_split_layers(request.model, 1));
  plan.precision = request.model.precision();
  plan.parameters = request.model.layout().count();
  plan.flops = request.model.training_flops();
  plan.dist.local_from = first_local_step(request, plan);
  plan.ema = train.ema;
  plan.averaged_from = first_averaged_step(train, plan);
  plan.average_every = weights_per_replica(request) ? request.distribute.average_every : 0;
  plan_costs(request, {.model = request.model, .optimizer = request.optimizer}, plan);
  if (!request.stages.empty()) plan_stages(request, plan);
  return plan;
}

}  // namespace lockstep
