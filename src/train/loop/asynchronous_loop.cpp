// Each worker computes gradient after gradient and pushes them to the servers, until so many steps are done
// in all; then all ranks synchronise. Rank 0 reports the totals of the servers, when it asks them for
// permission.

#include <algorithm>
#include <array>
#include <utility>

#include "gradient_step.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/train/loop/trainer.h"
#include "rank_ledger.h"

namespace lockstep {
namespace {

// The plan of a worker that has no others beside it.
Plan plan_of_one_rank(const Plan& plan, int rank) {
  Plan single = plan;
  single.world = 1;
  single.servers = 0;
  single.hosted = {plan.hosted_by(rank)};
  return single;
}

// The record of a worker as a row of a checkpoint: these counts, then those of its staleness.
constexpr std::array kSavedCounts{&WorkerRecord::computed,        &WorkerRecord::steps,
                                  &WorkerRecord::samples,         &WorkerRecord::dropped,
                                  &WorkerRecord::dropped_samples, &WorkerRecord::staleness_sum,
                                  &WorkerRecord::max_ahead};
constexpr std::size_t kSavedColumns = kSavedCounts.size() + 1024;

void add_row(WorkerRecord& record, std::span<const double> row) {
  const Index max_ahead = std::max(record.max_ahead, static_cast<Index>(row[kSavedCounts.size() - 1]));
  for (std::size_t i = 0; i < kSavedCounts.size(); ++i) record.*kSavedCounts[i] += static_cast<Index>(row[i]);
  record.max_ahead = max_ahead;
  for (std::size_t i = kSavedCounts.size(); i < row.size(); ++i) {
    const std::size_t staleness = i - kSavedCounts.size();
    if (row[i] == 0) continue;
    record.staleness.resize(std::max(record.staleness.size(), staleness + 1));
    record.staleness[staleness] += static_cast<Index>(row[i]);
  }
}

void fill_row(const WorkerRecord& record, std::span<double> row) {
  for (std::size_t i = 0; i < kSavedCounts.size(); ++i) row[i] = static_cast<double>(record.*kSavedCounts[i]);
  std::ranges::copy(record.staleness, row.begin() + kSavedCounts.size());
}

// No progress thread of all ranks runs beside a step that a worker takes by itself.
TrainingContext without_progress(TrainingContext context) {
  context.progress = nullptr;
  return context;
}

class AsynchronousLoop final : public UpdateLoop {
 public:
  AsynchronousLoop(const TrainingContext& context, AsynchronousStrategy& strategy)
      : context_(without_progress(context)),
        strategy_(strategy),
        self_(context.comm.split(context.comm.rank(), 0)),
        plan_(plan_of_one_rank(context.plan.dist, context.comm.rank())),
        gradients_({.training = context_, .comm = *self_, .plan = plan_}),
        ledger_(context.comm, context.settings.hosts, working_ranks(context.plan.dist)),
        batches_taken_(static_cast<std::size_t>(plan_.hosted.front().size())),
        saved_workers_(static_cast<std::size_t>(context.plan.sampling.replicas) * kSavedColumns) {}

  void resume_after(Index steps) override { logged_.steps = steps; }
  SavedState saved_state() override;
  void begin() override;
  void advance(Index until) override;
  void recompute_moments(Index steps, std::span<const Scalar> weights) override;
  void log_end() override;
  Progress progress() const override;
  double seconds() const override { return seconds_; }
  StepsReport report() const override {
    return {.time = ledger_.shares(),
            .ranks = ledger_.times(),
            .workers = workers_,
            .single_value_steps = single_value_steps_};
  }

 private:
  // A loss or gradient of a worker that is not finite.
  struct Failure {
    Index step = 0;
    double loss = 0;
    BadNumber found;
  };

  bool serves() const { return plan_.hosted.front().empty(); }
  int first_server() const { return static_cast<int>(context_.plan.dist.workers()); }
  void work();
  bool take_step(const Assignment& assignment, double asking);
  void trace(double seconds);
  void count_single_values();
  const StepBatch& next_batch();
  void log_if_due(const Totals& totals, double seconds);
  void log_metrics(const Totals& totals, double seconds);
  void finish_round();
  void gather_report();

  TrainingContext context_;
  AsynchronousStrategy& strategy_;
  std::unique_ptr<Communicator> self_;  // this rank and nobody else
  Plan plan_;                           // the plan of self_
  GradientStep gradients_;
  std::unique_ptr<Loader> loader_;
  RankLedger ledger_;
  TimeSums logged_time_;  // of this rank since the last log line
  Index own_steps_ = 0;
  Index own_single_value_steps_ = 0;  // those of this rank since all ranks synchronised
  Index single_value_steps_ = 0;      // sum over all workers until then
  std::vector<Index> batches_taken_;  // batches from the loader by hosted replica: equally many for each
  std::optional<Failure> failure_;
  std::optional<WorkersReport> workers_;
  std::vector<double> saved_workers_;  // a row for each replica; that of the first of a worker is its record
  std::vector<double> earlier_;        // the same, of earlier starts
  Totals logged_;                      // totals at the last log line
  Stopwatch round_;
  double seconds_ = 0;  // time of the rounds before
  double logged_seconds_ = 0;
};

SavedState AsynchronousLoop::saved_state() {
  const int rank = context_.comm.rank();
  SavedState state;
  state.push_back({.array = "batches_taken",
                   .size = context_.plan.sampling.replicas,
                   .range = plan_.hosted.front(),
                   .memory = as_buffer(std::span(batches_taken_)),
                   .written = plan_.hosted.front()});
  state.push_back(saved_by_first(rank, "seconds", std::span(&seconds_, 1)));
  state.push_back(saved_by_first(rank, "logged.seconds", std::span(&logged_seconds_, 1)));
  state.push_back(saved_by_first(rank, "logged.samples", std::span(&logged_.samples, 1)));
  state.push_back(saved_by_first(rank, "logged.weight", std::span(&logged_.weight, 1)));
  state.push_back(saved_by_first(rank, "single_value_steps", std::span(&single_value_steps_, 1)));
  state.push_back(saved_by_first(rank, "workers", std::span(saved_workers_)));
  state.push_back(saved_by_first(rank, "logged.loss", std::span(&logged_.loss, 1)));
  state.push_back(saved_by_first(rank, "logged.correct", std::span(&logged_.correct, 1)));
  return state;
}

// After a resume on other workers, replicas hosted here may have consumed different numbers of batches:
// continue after the largest.
void AsynchronousLoop::begin() {
  earlier_ = saved_workers_;
  gather_report();
  if (serves()) return;
  const Index taken = std::ranges::max(batches_taken_);
  std::ranges::fill(batches_taken_, taken);
  loader_ = context_.loader({taken, taken + context_.plan.batches() - workers_->totals.steps});
}

void AsynchronousLoop::advance(Index until) {
  round_.lap();
  if (serves()) {
    strategy_.serve(
        until,
        {.take_moments =
             [this](std::span<const double> sums) {
               context_.states.move_gathered(sums, BatchStatistics::Update::kMove);
             },
         .before_step = [this](Index step) { force_faults(context_.settings.debug, context_.comm, step); },
         .ends_early = [this] { return context_.control.has_wish(); }});
  } else {
    work();
  }
  context_.comm.barrier();
  seconds_ += round_.seconds();
  finish_round();
}

void AsynchronousLoop::work() {
  Stopwatch asking;
  const auto leaves = [this] { return context_.control.has_wish(); };
  while (const std::optional<Assignment> assignment = strategy_.next(leaves())) {
    log_if_due(assignment->totals, seconds_ + round_.seconds());
    if (!take_step(*assignment, asking.seconds())) break;
    asking.lap();
  }
  if (failure_) strategy_.next(false);  // nothing any more
  strategy_.send_done();
}

// False if the gradient is not finite.
bool AsynchronousLoop::take_step(const Assignment& assignment, double asking) {
  note_step(assignment.step);
  if (context_.tracer != nullptr) context_.tracer->begin_step(assignment.step);
  StepTimer timer(Phase::kData);
  const StepBatch& batch = next_batch();
  timer.enter(Phase::kCompute);
  force_faults(context_.settings.debug, context_.comm, own_steps_++);
  gradients_.run(batch, Measured::kNothing);
  LossSums tally;
  for (const LossSums& replica : gradients_.tallies()) tally.add(replica);
  Index samples = 0;
  for (const ReplicaBatch& replica : batch.replicas) samples += replica.rows;

  timer.enter(Phase::kExchange);
  const PassSeconds passes = gradients_.seconds();
  const std::vector<double> moments = context_.states.sums();
  const bool good = strategy_.push({.step = assignment.step,
                                    .samples = samples,
                                    .weight = tally.weight,
                                    .loss = tally.loss,
                                    .correct = tally.correct,
                                    .lr = context_.lr(assignment.step),
                                    .moments = moments});
  const double loss = mean_of(tally.loss, tally.weight);
  if (good && gradients_.single_values().replicas(plan_.hosted.front()) > 0) ++own_single_value_steps_;
  if (!good) failure_ = {assignment.step, loss, gradients_.find_bad_number(batch)};
  timer.enter(Phase::kExchange);  // up to here
  TimeSums time{.data = timer.seconds(Phase::kData) + passes.data,
                .forward = passes.forward,
                .total = timer.total() + asking};
  time.add_exchange({.exchange = asking + timer.seconds(Phase::kExchange), .waiting = assignment.waited});
  logged_time_.add(time);
  ledger_.add(time, {});
  trace(timer.total());
  if (good && context_.comm.rank() == 0) {
    context_.observer.on_step(context_.plan.before(assignment.step + 1), loss);
  }
  return good;
}

// Each worker keeps the slowest of its own steps.
void AsynchronousLoop::trace(double seconds) {
  constexpr Index kUndecided = 64;
  if (context_.tracer == nullptr) return;
  context_.tracer->end_step(seconds);
  if (context_.tracer->undecided() == kUndecided) context_.tracer->choose();
}

// A short last batch of an epoch may leave nothing for this worker.
const StepBatch& AsynchronousLoop::next_batch() {
  while (true) {
    const StepBatch& batch = loader_->next();
    for (Index& taken : batches_taken_) ++taken;
    const auto has_rows = [](const ReplicaBatch& replica) { return replica.rows > 0; };
    if (std::ranges::any_of(batch.replicas, has_rows)) return batch;
  }
}

void AsynchronousLoop::log_if_due(const Totals& totals, double seconds) {
  const Index every = context_.settings.log_every;
  if (context_.comm.rank() == 0 && totals.steps / every != logged_.steps / every)
    log_metrics(totals, seconds);
}

void AsynchronousLoop::log_end() {
  if (context_.comm.rank() == 0) log_metrics(workers_->totals, seconds_);
}

void AsynchronousLoop::log_metrics(const Totals& totals, double seconds) {
  const auto samples = static_cast<double>(totals.samples - logged_.samples);
  if (samples == 0) return;
  TrainMetrics metrics;
  metrics.progress = context_.plan.before(totals.steps);
  metrics.progress.samples = totals.samples;
  const double weight = context_.settings.weighted ? totals.weight - logged_.weight : samples;
  metrics.loss = mean_of(totals.loss - logged_.loss, weight);
  if (context_.loss.targets() != TargetKind::kValue) {
    metrics.accuracy = mean_of(totals.correct - logged_.correct, weight);
  }
  metrics.lr = context_.lr(totals.steps - 1);
  metrics.samples_per_second = samples / std::max(seconds - logged_seconds_, 1e-9);
  metrics.time = std::exchange(logged_time_, {}).shares();
  logged_ = totals;
  logged_seconds_ = seconds;
  context_.observer.on_train_metrics(metrics);
}

void AsynchronousLoop::finish_round() {
  ledger_.settle_asynchronous();
  if (context_.tracer != nullptr) {
    context_.tracer->pause();
    context_.tracer->note_clock(ledger_.clock());
    context_.tracer->choose();
  }
  Index earliest = failure_ ? failure_->step : std::numeric_limits<Index>::max();
  const std::vector<Index> failures = gather_numbers(context_.comm, earliest);
  const auto first = std::ranges::min_element(failures);
  gather_report();
  context_.states.adopt(first_server());
  if (*first != std::numeric_limits<Index>::max()) {
    const bool mine = *first == earliest;
    const double loss = broadcast_value(context_.comm, mine ? failure_->loss : 0.0,
                                        static_cast<int>(first - failures.begin()));
    stop_on_bad_number(context_.comm, mine ? failure_->found : BadNumber{}, *first, loss,
                       workers_->totals.steps);
  }
  count_single_values();
  context_.control.agree();
  if (context_.comm.rank() != 0) return;
  // Before an evaluation, with which the learning rate may fall.
  log_if_due(workers_->totals, seconds_);
  if (workers_->totals.steps == context_.plan.steps) log_end();
  context_.observer.on_workers(*workers_, progress());
  context_.observer.on_ranks(ledger_.times(), progress());
}

// *Collective.* The servers count since this start, and a worker goes on for those that had its replicas.
void AsynchronousLoop::gather_report() {
  workers_ = strategy_.report();
  std::ranges::fill(saved_workers_, 0);
  for (std::size_t worker = 0; worker < workers_->workers.size(); ++worker) {
    const Range hosted = context_.plan.dist.hosted[worker];
    const auto row = [&](std::vector<double>& rows, Index replica) {
      return std::span(rows).subspan(static_cast<std::size_t>(replica) * kSavedColumns, kSavedColumns);
    };
    WorkerRecord& record = workers_->workers[worker];
    for (Index replica = hosted.begin; replica < hosted.end; ++replica)
      add_row(record, row(earlier_, replica));
    fill_row(record, row(saved_workers_, hosted.begin));
  }
}

// *Collective.*
void AsynchronousLoop::count_single_values() {
  const bool new_ones = single_value_steps_ == 0;
  context_.comm.all_reduce_sum(as_buffer(std::span(&own_single_value_steps_, 1)));
  single_value_steps_ += std::exchange(own_single_value_steps_, 0);
  if (!new_ones || single_value_steps_ == 0 || context_.comm.rank() != 0) return;
  warn_of_single_values(plural(single_value_steps_, "step") + " so far gave a replica");
}

Progress AsynchronousLoop::progress() const {
  Progress progress = context_.plan.before(workers_ ? workers_->totals.steps : 0);
  progress.samples = workers_ ? workers_->totals.samples : 0;
  return progress;
}

void AsynchronousLoop::recompute_moments(Index steps, std::span<const Scalar> weights) {
  const std::unique_ptr<Loader> loader = context_.loader({0, steps});
  context_.states.begin_step();
  for (Index step = 0; step < steps; ++step) gradients_.measure(loader->next(), weights);
  std::vector<double> sums = context_.states.sums();
  context_.comm.all_reduce_sum(as_buffer(std::span(sums)));
  context_.states.move_gathered(sums, BatchStatistics::Update::kReplace);
  context_.states.adopt(first_server());
}

}  // namespace

std::unique_ptr<UpdateLoop> make_asynchronous_loop(const TrainingContext& context,
                                                   AsynchronousStrategy& strategy) {
  return std::make_unique<AsynchronousLoop>(context, strategy);
}

}  // namespace lockstep
