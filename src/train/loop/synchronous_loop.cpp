#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradient_step.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/math/fixed_tree.h"
#include "lockstep/train/loop/trainer.h"
#include "rank_ledger.h"
#include "replica_check.h"

namespace lockstep {
namespace {

// Stages of a model have work of their own each: one that has more is not slow.
std::vector<bool> compared_ranks(const TrainingContext& context) {
  if (context.pipeline == nullptr) return working_ranks(context.plan.dist);
  return std::vector<bool>(static_cast<std::size_t>(context.comm.size()), false);
}

class SynchronousLoop final : public UpdateLoop {
 public:
  SynchronousLoop(const TrainingContext& context, SynchronousStrategy& strategy)
      : context_(context),
        strategy_(strategy),
        gradients_({.training = context_,
                    .comm = context.workers(),
                    .plan = context.plan.dist,
                    .sums = context.settings.sums}),
        check_(context.comm, strategy, context.settings.ranks),
        weights_(context.settings.weighted ? static_cast<std::size_t>(context.plan.sampling.replicas) : 0),
        replica_weights_(gradients_.tallies().size()),
        tallies_(gradients_.tallies().size()),
        audit_(context),
        ledger_(context.comm, context.settings.hosts, compared_ranks(context)) {}

  void resume_after(Index steps) override { steps_done_ = steps; }
  SavedState saved_state() override;
  void begin() override {
    audit_.begin(steps_done_);
    loader_ = context_.loader({steps_done_, context_.plan.steps});
  }

  void advance(Index until) override {
    while (steps_done_ < until) {
      run_step(steps_done_++);
      const std::int64_t arrived = trace_clock();
      const bool logs = steps_done_ == context_.plan.steps || steps_done_ % context_.settings.log_every == 0;
      const bool settles = logs || ledger_.is_due();
      if (settles) settle();
      if (logs) log_metrics(steps_done_, steps_done_ == context_.plan.steps);
      const std::optional<std::uint64_t> checksum = check_.checksum(steps_done_);
      const bool leaves = context_.control.look(checksum);
      // A wait that no step follows would be in no window of the ledger.
      const bool goes_on = steps_done_ < until && !leaves;
      if (goes_on && (settles || context_.control.just_agreed()))
        add_wait_between_steps({arrived, trace_clock()});
      if (checksum && !context_.control.checksums_agree()) check_.report(steps_done_);
      if (leaves) break;
    }
    settle();
    if (context_.tracer != nullptr) context_.tracer->pause();
    stop_on_late_bad_number();
  }

  void recompute_moments(Index steps, std::span<const Scalar> weights) override {
    const std::unique_ptr<Loader> loader = context_.loader({0, steps});
    context_.states.begin_step();
    for (Index step = 0; step < steps; ++step) gradients_.measure(loader->next(), weights);
    context_.states.update(BatchStatistics::Update::kReplace);
  }

  void log_end() override { log_metrics(steps_done_, true); }
  Progress progress() const override { return context_.plan.before(steps_done_); }
  double seconds() const override { return train_seconds_; }
  StepsReport report() const override {
    return {.time = ledger_.shares(),
            .ranks = ledger_.times(),
            .skipped_steps = skipped_,
            .single_value_steps = single_value_steps_,
            .repairs = check_.repairs()};
  }

 private:
  Range hosted() const { return context_.plan.dist.hosted_by(context_.workers().rank()); }
  Index first_hosted() const { return hosted().begin; }
  bool gradients_exchanged() const { return !strategy_.local(); }
  Measured measured(Index step) const;
  double weigh(const StepBatch& batch, Index step);
  void run_step(Index step);
  void prepare_statistics(Index steps_done);
  void accept(const StepOutcome& outcome, Index step);
  void average_weights();
  void flip_bit_if_due(Index step);
  void add_time(const StepTimer& timer, const StepOutcome& outcome, const PassSeconds& passes,
                ExchangeTime exchange, std::span<const Arrival> arrivals);
  void add_wait_between_steps(const Arrival& arrival);
  std::span<const Arrival> arrivals(bool exchanged) const;
  void note_averaging(const StepOutcome& outcome);
  void settle();
  void note_single_values(Index step);
  void leave_out(const StepBatch& batch, Index step, double loss);
  void log_metrics(Index steps_done, bool last);
  void log_training(const Progress& progress);
  void stop_on_late_bad_number();

  TrainingContext context_;
  SynchronousStrategy& strategy_;
  GradientStep gradients_;
  ReplicaCheck check_;
  std::unique_ptr<Loader> loader_;
  Index steps_done_ = 0;
  Index skipped_ = 0;
  Index single_value_steps_ = 0;
  std::vector<double> weights_;          // sum of those of the samples of each replica; empty: they have none
  std::vector<double> replica_weights_;  // see UpdateRequest
  std::vector<LossSums> tallies_;        // sums of each local replica since the last log line
  EpochAudit audit_;
  std::optional<UpdateStatistics> statistics_;  // of the last step, if it was measured
  RankLedger ledger_;
  std::vector<Arrival> averaging_;  // of the last local step; empty: nothing was averaged
  Index ranks_logged_ = 0;          // step of the last report on the ranks
  double train_seconds_ = 0;
  double logged_seconds_ = 0;
  double logged_samples_ = 0;
};

// Replica by replica, so that it is the same whoever hosts them.
SavedState SynchronousLoop::saved_state() {
  static_assert(sizeof(LossSums) == LossSums::kColumns * sizeof(double));
  constexpr Index kColumns = LossSums::kColumns;
  const int rank = context_.workers().rank();
  const Range range{hosted().begin * kColumns, hosted().end * kColumns};
  double* const first = tallies_.empty() ? nullptr : &tallies_.front().weight;
  SavedState state;
  state.push_back({.array = "logged.tallies",
                   .size = context_.plan.sampling.replicas * kColumns,
                   .range = range,
                   .memory = as_buffer(std::span(first, static_cast<std::size_t>(range.size()))),
                   .written = range});
  audit_.add_saved(state);
  state.push_back(saved_by_first(rank, "skipped", std::span(&skipped_, 1)));
  state.push_back(saved_by_first(rank, "single_value_steps", std::span(&single_value_steps_, 1)));
  state.push_back(saved_by_first(rank, "seconds", std::span(&train_seconds_, 1)));
  state.push_back(saved_by_first(rank, "logged.seconds", std::span(&logged_seconds_, 1)));
  state.push_back(saved_by_first(rank, "logged.samples", std::span(&logged_samples_, 1)));
  return state;
}

// An unoverlapped exchange is timed only for strategies that overlap it.
Measured SynchronousLoop::measured(Index step) const {
  return strategy_.overlaps() ? measured_in(step) : Measured::kNothing;
}

// The weight of a step (UpdateRequest). *Collective* if samples have weights and gradients are exchanged: no
// rank knows those of the others, and in a group only the last stage has weights. It is added along the tree,
// so that it is the same on any number of ranks.
double SynchronousLoop::weigh(const StepBatch& batch, Index step) {
  for (std::size_t i = 0; i < replica_weights_.size(); ++i) {
    const ReplicaBatch& replica = batch.replicas[i];
    replica_weights_[i] = replica.weights_of({0, replica.rows}).sum(replica.rows);
  }
  if (!context_.settings.weighted) return static_cast<double>(context_.sampler.step_samples(step));
  if (context_.pipeline != nullptr) context_.pipeline->share_of_last(replica_weights_);
  if (!gradients_exchanged()) return tree_sum(replica_weights_);
  std::ranges::copy(replica_weights_, weights_.begin() + first_hosted());
  context_.workers().start_all_gather(as_buffer(std::span(weights_)), context_.plan.dist.hosted)->wait();
  return tree_sum(weights_);
}

void SynchronousLoop::run_step(Index step) {
  note_step(step);
  if (context_.tracer != nullptr) context_.tracer->begin_step(step);
  StepTimer timer(Phase::kData);
  const StepBatch& batch = loader_->next();
  timer.enter(Phase::kCompute);
  force_faults(context_.settings.debug, context_.comm, step);
  timer.enter(Phase::kExchange);
  const double weight = weigh(batch, step);
  strategy_.begin_step(batch.rows, weight);
  timer.enter(Phase::kCompute);
  const bool exchanged = gradients_exchanged();
  gradients_.run(batch, measured(step));  // forward and backward; buckets leave meanwhile
  timer.enter(Phase::kExchange);
  strategy_.finish_exchange();
  if (exchanged) gradients_.sender().note_end();
  timer.enter(Phase::kOptimizer);
  prepare_statistics(step + 1);
  const StepOutcome outcome = strategy_.update({.step = step + 1 - skipped_,
                                                .weight = weight,
                                                .lr = context_.lr(step),
                                                .replica_weights = replica_weights_,
                                                .statistics = statistics_ ? &*statistics_ : nullptr});
  if (!exchanged) note_averaging(outcome);
  timer.enter(Phase::kExchange);
  // The search for a bad number takes the replicas through the model once more: all of that is exchange.
  const PassSeconds passes = gradients_.seconds();
  const ExchangeTime exchange = gradients_.sender().time();
  if (outcome.applied) {
    accept(outcome, step);
    timer.enter(Phase::kOptimizer);
    average_weights();
  } else {
    leave_out(batch, step, outcome.mean_loss);
  }
  timer.enter(Phase::kCompute);
  flip_bit_if_due(step);
  audit_.add(batch, step);
  add_time(timer, outcome, passes, exchange, arrivals(exchanged));
}

// The steps that are measured come right before lines of metrics, and at least so many apart that the passes
// over the arenas take less than a hundredth of the time. They depend on nothing but the config.
void SynchronousLoop::prepare_statistics(Index steps_done) {
  constexpr Index kMinApart = 10;
  const Index every = round_up(kMinApart, context_.settings.log_every);
  statistics_.reset();
  if (steps_done % every != 0 && steps_done != context_.plan.steps) return;
  statistics_.emplace().with_histograms = context_.settings.histograms;
}

// Records a step that was taken: running moments, sums for the log, the observer's progress.
void SynchronousLoop::accept(const StepOutcome& outcome, Index step) {
  for (const Index replica : outcome.stopped) context_.states.forget(replica);
  context_.states.update(BatchStatistics::Update::kMove);
  if (gradients_.single_values().replicas() > 0) note_single_values(step);
  for (std::size_t i = 0; i < tallies_.size(); ++i) tallies_[i].add(gradients_.tallies()[i]);
  if (context_.comm.rank() == 0) {
    context_.observer.on_step(context_.plan.before(step + 1), outcome.mean_loss);
  }
}

void SynchronousLoop::average_weights() {
  WeightAverage* const average = context_.average;
  if (average == nullptr || average->is_uniform()) return;
  const bool first = context_.workers().rank() == 0;
  average->add(strategy_.weights(first_hosted()), first ? context_.states.of(0) : std::span<const Scalar>());
}

void SynchronousLoop::flip_bit_if_due(Index step) {
  if (context_.settings.debug.flip_rank < 0 || context_.settings.debug.flip_step != step) return;
  const Index offset = context_.model.layout().params.back().range.begin;
  flip_bit(context_.settings.debug, context_.comm, at(strategy_.weights(first_hosted()), offset));
}

// The exchanges of the step. Stages of a model have other buckets each, so that their arrivals cannot be
// compared; they know how long they were idle.
std::span<const Arrival> SynchronousLoop::arrivals(bool exchanged) const {
  if (context_.pipeline != nullptr) return {};
  return exchanged ? gradients_.sender().arrivals() : std::span<const Arrival>(averaging_);
}

// A local step in which the replicas are averaged ends with that.
void SynchronousLoop::note_averaging(const StepOutcome& outcome) {
  averaging_.clear();
  if (!outcome.exchanged) return;
  const std::int64_t now = trace_clock();
  averaging_.push_back({now - static_cast<std::int64_t>(1e9 * outcome.exchange_seconds), now});
  trace_event(TraceKind::kExchange, averaging_.front().arrived, now);
}

void SynchronousLoop::add_time(const StepTimer& timer, const StepOutcome& outcome, const PassSeconds& passes,
                               ExchangeTime exchange, std::span<const Arrival> arrivals) {
  exchange.exchange += timer.seconds(Phase::kExchange) + outcome.exchange_seconds;
  const double optimizer =
      timer.seconds(Phase::kOptimizer) - outcome.exchange_seconds - outcome.product_seconds;
  TimeSums time{.data = timer.seconds(Phase::kData) + passes.data,
                .forward = passes.forward,
                .idle = passes.idle,
                .optimizer = optimizer,
                .total = timer.total()};
  time.add_exchange(exchange);
  train_seconds_ += time.total;
  ledger_.add(time, arrivals);
  if (context_.tracer != nullptr) context_.tracer->end_step(time.total);
}

// Ranks wait for each other between two steps as well: for a line of metrics, and to agree whether to go on.
void SynchronousLoop::add_wait_between_steps(const Arrival& arrival) {
  const double seconds = 1e-9 * static_cast<double>(arrival.left - arrival.arrived);
  train_seconds_ += seconds;
  ledger_.add_exchange(seconds, arrival);
}

// *Collective.* The ranks compare when they came to the exchange.
void SynchronousLoop::settle() {
  ledger_.settle();
  if (context_.tracer == nullptr) return;
  context_.tracer->note_clock(ledger_.clock());
  context_.tracer->choose(ledger_.step_seconds());
}

void SynchronousLoop::note_single_values(Index step) {
  if (single_value_steps_++ > 0 || context_.comm.rank() != 0) return;
  warn_of_single_values(fmt::format("step {} gives {} of {}", step + 1, gradients_.single_values().replicas(),
                                    plural(context_.plan.sampling.replicas, "replica")));
}

// The optimizer counts the steps that were taken; samples and the schedule go on.
void SynchronousLoop::leave_out(const StepBatch& batch, Index step, double loss) {
  stop_on_late_bad_number();
  const BadNumber found = gradients_.find_bad_number(batch);
  if (context_.settings.on_nan == OnNan::kStop || skipped_ == context_.settings.skip_limit) {
    stop_on_bad_number(context_.comm, found, step, loss, step - skipped_, skipped_);
  }
  ++skipped_;
  const std::string where = describe_bad_number(context_.comm, found);
  if (context_.comm.rank() != 0) return;
  log_warning("step {} is left out: {} ({} of at most {})", step + 1, where, skipped_,
              context_.settings.skip_limit);
  context_.observer.on_step(context_.plan.before(step + 1), NAN);
}

// The times of the ranks come with some of these lines, and with the last one even where that is left out.
void SynchronousLoop::log_metrics(Index steps_done, bool last) {
  const Progress progress = context_.plan.before(steps_done);
  log_training(progress);
  if (context_.comm.rank() != 0 || context_.comm.size() == 1 || ranks_logged_ == steps_done) return;
  if (!ranks_due(ranks_logged_, steps_done, last ? steps_done : context_.plan.steps)) return;
  ranks_logged_ = steps_done;
  context_.observer.on_ranks(ledger_.times(), progress);
}

void SynchronousLoop::log_training(const Progress& progress) {
  std::vector<double> rows;
  for (const LossSums& tally : tallies_) rows.insert(rows.end(), {tally.weight, tally.loss, tally.correct});
  std::vector<double> sums =
      ordered_sums(context_.workers(), rows, hosted(), context_.plan.sampling.replicas, LossSums::kColumns);
  if (context_.pipeline != nullptr) context_.pipeline->share_of_last(sums);
  std::ranges::fill(tallies_, LossSums{});
  if (sums[0] == 0) return;  // all steps since the last line were left out, or no sample weighs anything

  TrainMetrics metrics;
  metrics.progress = progress;
  metrics.loss = sums[1] / sums[0];
  if (!std::isfinite(metrics.loss)) stop_on_late_bad_number();
  if (context_.loss.targets() != TargetKind::kValue) metrics.accuracy = sums[2] / sums[0];
  metrics.lr = context_.lr(progress.steps - 1);
  metrics.samples_per_second = (static_cast<double>(metrics.progress.samples) - logged_samples_) /
                               std::max(train_seconds_ - logged_seconds_, 1e-9);
  metrics.time = ledger_.take_shares();
  if (statistics_ && !std::isnan(statistics_->gradient_norm)) metrics.update = statistics_;
  logged_samples_ = static_cast<double>(metrics.progress.samples);
  logged_seconds_ = train_seconds_;
  if (context_.comm.rank() == 0) context_.observer.on_train_metrics(metrics);
}

void SynchronousLoop::stop_on_late_bad_number() {
  const std::string late = strategy_.late_bad_number();
  if (!late.empty()) lockstep::stop_on_late_bad_number(late);
}

}  // namespace

std::unique_ptr<UpdateLoop> make_synchronous_loop(const TrainingContext& context,
                                                  SynchronousStrategy& strategy) {
  return std::make_unique<SynchronousLoop>(context, strategy);
}

}  // namespace lockstep
