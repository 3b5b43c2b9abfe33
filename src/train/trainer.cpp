#include "lockstep/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "lockstep/base/errors.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/dist/ordered_sums.h"

namespace lockstep {
namespace {

GradientStepContext gradient_context(const TrainingContext& context) {
  return {.comm = context.comm,
          .plan = context.plan.dist,
          .model = context.model,
          .loss = context.loss,
          .strategy = context.strategy,
          .states = context.states,
          .team = context.team,
          .reduction = context.reduction,
          .seed = context.seed,
          .accumulate = context.accumulate,
          .most_rows = context.sampler.largest_count(),
          .target_columns = context.target_columns};
}

}  // namespace

Trainer::Trainer(const TrainingContext& context)
    : context_(context),
      gradients_(gradient_context(context)),
      samples_(static_cast<std::size_t>(context.plan.sampling.replicas)),
      tallies_(gradients_.tallies().size()) {}

TrainingResult Trainer::run() {
  context_.strategy.start();
  context_.states.start();
  for (Index step = 0; step < context_.plan.steps; ++step) {
    run_step(step);
    const Index done = step + 1;
    const bool last = done == context_.plan.steps;
    if (last || (context_.log_every > 0 && done % context_.log_every == 0)) log_metrics(done);
    if (!last) evaluate_if_due(done);
  }
  const Index steps = context_.plan.steps;
  recompute_moments();
  if (context_.validation != nullptr) last_evaluation_ = evaluate(*context_.validation, steps);
  if (context_.test != nullptr) last_evaluation_ = evaluate(*context_.test, steps);
  if (last_evaluation_ && !std::isfinite(last_evaluation_->loss)) {
    throw AgreedError(
        "training is complete, but the model gives a loss that is not finite in evaluation: look at the "
        "evaluation data, and at the scale of what goes into batch norm",
        kExitTraining);
  }
  const Progress progress = context_.plan.before(steps);
  return {.progress = progress,
          .seconds = train_seconds_,
          .samples_per_second = static_cast<double>(progress.samples) / train_seconds_,
          .time = run_clock_.take_shares(context_.comm),
          .last_evaluation = last_evaluation_};
}

void Trainer::run_step(Index step) {
  Stopwatch whole;
  const StepBatch& batch = context_.loader.next();
  const double data_seconds = whole.seconds();
  force_faults(step);

  for (std::size_t replica = 0; replica < samples_.size(); ++replica) {
    samples_[replica] = context_.sampler.count(step, static_cast<Index>(replica));
  }
  context_.strategy.begin_step(samples_);
  gradients_.run(batch, step % StepClock::kMeasureEvery == 0);
  ExchangeTime exchange = gradients_.exchange_time();
  const Stopwatch finishing;
  context_.strategy.finish_exchange();
  exchange.exchange += finishing.seconds();

  const StepOutcome outcome =
      context_.strategy.update({.step = step + 1,
                                .samples = context_.sampler.step_samples(step),
                                .lr = context_.schedule.lr(context_.plan.before(step))});
  exchange.exchange += outcome.exchange_seconds;
  if (!outcome.applied) stop_on_bad_number(batch, step, outcome.mean_loss);
  const Stopwatch moving;
  context_.states.update(BatchStatistics::Update::kMove);
  exchange.exchange += moving.seconds();

  for (std::size_t i = 0; i < tallies_.size(); ++i) tallies_[i].add(gradients_.tallies()[i]);
  const double seconds = whole.seconds();
  train_seconds_ += seconds;
  log_clock_.add(data_seconds, seconds, exchange);
  run_clock_.add(data_seconds, seconds, exchange);
  if (context_.comm.rank() == 0) context_.observer.on_step(context_.plan.before(step + 1), outcome.mean_loss);
}

void Trainer::log_metrics(Index steps_done) {
  std::vector<double> rows;
  for (const Tally& tally : tallies_) rows.insert(rows.end(), {tally.samples, tally.loss, tally.correct});
  const std::vector<double> sums = ordered_sums(
      context_.comm, rows, context_.plan.dist.hosted[static_cast<std::size_t>(context_.comm.rank())],
      context_.plan.sampling.replicas, Tally::kColumns);
  std::ranges::fill(tallies_, Tally{});

  TrainMetrics metrics;
  metrics.progress = context_.plan.before(steps_done);
  metrics.loss = sums[1] / sums[0];
  if (context_.loss.targets() != TargetKind::kValue) metrics.accuracy = sums[2] / sums[0];
  metrics.lr = context_.schedule.lr(context_.plan.before(steps_done - 1));
  metrics.samples_per_second = static_cast<double>(metrics.progress.samples - logged_samples_) /
                               std::max(train_seconds_ - logged_seconds_, 1e-9);
  metrics.time = log_clock_.take_shares(context_.comm);
  logged_samples_ = metrics.progress.samples;
  logged_seconds_ = train_seconds_;
  if (context_.comm.rank() == 0) context_.observer.on_train_metrics(metrics);
}

void Trainer::evaluate_if_due(Index steps_done) {
  Evaluation* evaluation = context_.validation != nullptr ? context_.validation : context_.test;
  if (evaluation == nullptr || context_.evaluate_every <= 0) return;
  const double epochs = context_.plan.before(steps_done).epochs;
  const auto due = static_cast<Index>(std::floor(epochs / context_.evaluate_every + 1e-9));
  if (due == evaluations_done_) return;
  evaluations_done_ = due;
  recompute_moments();
  evaluate(*evaluation, steps_done);
}

EvalMetrics Trainer::evaluate(Evaluation& evaluation, Index steps_done) {
  EvalMetrics metrics = evaluation.run({context_.strategy.weights(), context_.states.settle()});
  metrics.progress = context_.plan.before(steps_done);
  if (context_.comm.rank() == 0) context_.observer.on_evaluation(metrics);
  return metrics;
}

// As Wu & Johnson 2021, "Rethinking batch in BatchNorm", section 3.1: the moments of many batches under the
// weights as they are now, instead of a moving average over weights that were.
void Trainer::recompute_moments() {
  if (context_.calibration_steps == 0 || context_.model.state_layout().size == 0) return;
  const Index steps = std::min(context_.calibration_steps, context_.plan.steps);
  const std::unique_ptr<Loader> loader = context_.calibration(steps);
  context_.states.begin_step();
  for (Index step = 0; step < steps; ++step) gradients_.measure(loader->next());
  context_.states.update(BatchStatistics::Update::kReplace);
}

void Trainer::force_faults(Index step) const {
  const DebugOptions& debug = context_.debug;
  if (debug.delay_rank == context_.comm.rank())
    std::this_thread::sleep_for(std::chrono::milliseconds(debug.delay_ms));
  if (debug.fail_rank == context_.comm.rank() && debug.fail_step == step) {
    throw std::runtime_error(
        fmt::format("debug.fail_rank {} fails at step {} as asked", debug.fail_rank, step));
  }
}

void Trainer::stop_on_bad_number(const StepBatch& batch, Index step, double loss) {
  const BadNumber here = gradients_.find_bad_number(batch);
  std::vector<Index> places(static_cast<std::size_t>(context_.comm.size()));
  context_.comm.all_gather(as_buffer(std::span<const Index>(&here.place, 1)), as_buffer(std::span(places)));
  const std::vector<std::string> texts = gather_texts(context_.comm, here.text);
  const auto first = std::ranges::min_element(places);
  const std::string& found = texts[static_cast<std::size_t>(first - places.begin())];
  const std::string where = found.empty() ? "the sum of the gradients is not finite or overflows" : found;
  throw AgreedError(
      fmt::format(
          "step {}: the loss is {} and training stops: {}. The weights are those after {} good step{}. Lower "
          "train.lr, add train.warmup, or clip with train.clip_norm",
          step + 1, std::isnan(loss) ? std::abs(loss) : loss, where, step, step == 1 ? "" : "s"),
      kExitTraining);
}

}  // namespace lockstep
