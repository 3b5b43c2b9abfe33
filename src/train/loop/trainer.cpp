#include "lockstep/train/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/base/types.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/train/storage/staged_model.h"

namespace lockstep {
namespace {

// Batches over which the moments of batch norm are measured under a uniform average, where eval.precise_bn
// leaves it open: those of the averaged models suit none of the layers behind the first (Izmailov et al.
// 2018, section 3.1).
constexpr Index kAverageBatches = 100;

// Puts what the ranks do between two steps on the timeline, if there is one.
class OutsideSpan : NoCopy {
 public:
  OutsideSpan(StepTracer* tracer, TraceKind kind)
      : tracer_(tracer), kind_(kind), begin_(tracer != nullptr ? trace_clock() : 0) {}
  ~OutsideSpan() {
    if (tracer_ != nullptr) tracer_->add(kind_, begin_, trace_clock());
  }

 private:
  StepTracer* tracer_;
  TraceKind kind_;
  std::int64_t begin_;
};

std::unique_ptr<UpdateLoop> make_update_loop(const TrainingContext& context) {
  if (AsynchronousStrategy* const asynchronous = context.strategy.asynchronous()) {
    return make_asynchronous_loop(context, *asynchronous);
  }
  return make_synchronous_loop(context, *context.strategy.synchronous());
}

// Without a step left to take, the loops over steps would never end.
[[noreturn]] void throw_beyond_the_end(Index done, Index steps) {
  throw AgreedError(fmt::format("the checkpoint has made {} steps, and the run has only {}; make it longer",
                                with_commas(done), with_commas(steps)),
                    kExitConfig);
}

}  // namespace

Trainer::Trainer(const TrainingContext& context)
    : context_(context),
      loop_(make_update_loop(context)),
      best_weights_(context.comm, context.workers(), context.model) {}

TrainingResult Trainer::run() {
  begin();
  const Index first = loop_->progress().steps;
  take_steps();
  if (is_over() && !stops()) finish_run();
  // From the checkpoint of another run to the end without a step: this run has no checkpoint of its end yet.
  const bool made_no_step = first == context_.plan.steps;
  if (stops() || (made_no_step && checkpoint_due(first - 1, first))) save(IfBusy::kLeaveOut);
  if (context_.saving != nullptr) context_.saving->writer.finish();
  if (!evaluations_.empty() && !std::isfinite(evaluations_.back().loss)) {
    throw AgreedError(
        "training is complete, but the model gives a loss that is not finite in evaluation: look at the "
        "evaluation data, and at the scale of what goes into batch norm",
        kExitTraining);
  }
  return result();
}

// Until the end of the plan, or something ends the run early: evaluates if that is due, trains to the next
// stop, saves if that is due.
void Trainer::take_steps() {
  Evaluation* const during = evaluation_during();
  const Index steps = context_.plan.steps;
  Index done = loop_->progress().steps;
  // The last checkpoint may have been made before an evaluation that was due; that of another run has its
  // evaluation there. The last one of the run is a part of its result.
  const bool was_made = context_.checkpoint != nullptr && context_.checkpoint->header().evaluated &&
                        context_.saving != nullptr && context_.saving->writer.has(done) && !ends_early();
  bool evaluates =
      done < steps && !was_made && (done > 0 ? evaluation_due(done - 1, done) : evaluates_at_start());
  if ((evaluates || done == steps) && !stops()) recompute_moments();
  while (!stops()) {
    if (evaluates) evaluate(during);
    if (evaluates && pauses_after(done) && !stops() && !ends_early()) {
      paused_ = true;
      context_.control.stop("the sweep, to compare its trials");
    }
    if (stops() || is_over()) return;
    loop_->advance(next_stop(done));
    const Index before = done;
    done = loop_->progress().steps;
    if (context_.plan.averages_between(before, done)) average_weights();
    evaluates = done < steps && evaluation_due(before, done);
    // A checkpoint holds the moments that are evaluated with.
    if ((evaluates || done == steps) && !stops()) recompute_moments();
    // Asynchronous workers may come back before any of them has stepped.
    const bool saves_later = evaluates && pauses_after(done);
    if (stops() || (checkpoint_due(before, done) && !saves_later)) save(IfBusy::kLeaveOut);
  }
}

TrainingResult Trainer::result() {
  TrainingResult result;
  static_cast<StepsReport&>(result) = loop_->report();
  result.progress = loop_->progress();
  result.seconds = loop_->seconds();
  const Index steps = result.progress.steps;
  result.samples_per_second = static_cast<double>(result.progress.samples) / result.seconds;
  if (steps > 0) result.lr = context_.lr(steps - 1);
  result.evaluations = evaluations_;
  result.last = last_;
  result.paused = paused_;
  result.stopped = context_.control.stop_reason();
  if (!stops() && ends_early()) result.early = context_.early_stopping->describe();
  result.best = best_;
  if (context_.plan.is_averaged(best_ ? best_->progress.steps : steps))
    result.average = context_.plan.describe_average();
  if (has_other_weights()) result.best_weights = best_weights_.take();
  result.calibration = calibration_;
  return result;
}

// The evaluations after the last step: that of the validation set decides which weights the model has, and
// with these the test set is evaluated.
void Trainer::finish_run() {
  if (ends_early()) {
    if (saves_last()) save(IfBusy::kWait);
    loop_->log_end();
  } else if (context_.validation != nullptr) {
    evaluate(context_.validation);
  }
  if (stops()) return;
  choose_weights();
  if (context_.settings.calibrates) calibrate();
  if (context_.validation != nullptr && !stops()) measure_kept();
  if (context_.test != nullptr && !stops()) evaluate(context_.test);
  if (context_.test != nullptr && !stops()) evaluations_.push_back(*last_evaluation_);
}

// *Collective.* Evaluates the validation set once more only if that was not done yet with these weights: for
// the best ones of an earlier start, and with a temperature.
void Trainer::measure_kept() {
  if (has_other_weights()) last_ = last_evaluation_;
  const Progress kept = best_ ? best_->progress : loop_->progress();
  std::optional<EvalMetrics> found = has_other_weights() ? best_evaluation_ : last_evaluation_;
  if (calibration_ || !found || found->progress.steps != kept.steps) {
    note_phase(Phase::kEvaluation);
    found = context_.validation->run(kept_values(), interrupted());
    if (!found) return;
    found->progress = kept;
  }
  evaluations_.push_back(*found);
}

// *Collective.* Fits the temperature of the weights that the model has.
void Trainer::calibrate() {
  note_phase(Phase::kEvaluation);
  calibration_ = context_.validation->calibrate(kept_values(), interrupted());
  if (!calibration_) return;
  context_.validation->set_temperature(calibration_->temperature);
  if (context_.test != nullptr) context_.test->set_temperature(calibration_->temperature);
}

// *Collective.* The model gets the weights of the best evaluation, if there is one.
void Trainer::choose_weights() {
  if (!keeps_best()) return;
  const BestEvaluation& best = *context_.saving->best;
  const std::string& measure = best.measure().name();
  if (std::isnan(best.value())) {
    if (context_.comm.rank() == 0) {
      log_warning("no evaluation of the validation set had a finite {}: the model has the last weights",
                  measure);
    }
    return;
  }
  if (best.step() != loop_->progress().steps) {
    CheckpointWriter& writer = context_.saving->writer;
    writer.finish();
    if (!best_weights_.load(best.step(), writer.finished(best.step()))) return;
  }
  best_ = {.measure = measure, .value = best.value(), .progress = context_.plan.before(best.step())};
}

void Trainer::begin() {
  context_.strategy.start();
  context_.states.start();
  if (context_.checkpoint != nullptr) {
    const Index steps = context_.checkpoint->header().progress.steps;
    if (steps > context_.plan.steps) throw_beyond_the_end(steps, context_.plan.steps);
    context_.strategy.resume_after(steps);
    loop_->resume_after(steps);
    SavedState state;
    agree(context_.comm, [&] { state = saved_state(); });
    if (context_.pipeline != nullptr) offset_by_stage(*context_.pipeline, state);
    agree(context_.comm, [&] { context_.checkpoint->fill(state); });
    context_.states.resume();
    if (context_.average != nullptr) context_.average->resume();
    // A run that was killed may not have come to that.
    if (keeps_best() && context_.saving->best->step() == steps) context_.saving->writer.mark_best(steps);
  }
  loop_->begin();
}

// *Local.* The state that strategy, replicas and loop keep beside the weights.
SavedState Trainer::saved_state() {
  SavedState state = context_.strategy.saved_state();
  context_.states.add_saved(state);
  SavedState of_loop = loop_->saved_state();
  std::ranges::move(of_loop, std::back_inserter(state));
  const auto add = [&](const std::string& name, std::span<double> values) {
    state.push_back(saved_by_first(context_.workers().rank(), name, values));
    state.back().optional = true;
  };
  if (context_.average != nullptr) context_.average->add_saved(state);
  if (keeps_best()) add("best_evaluation", context_.saving->best->state());
  if (context_.early_stopping != nullptr) add("early_stopping", context_.early_stopping->state());
  if (context_.plateau != nullptr) {
    add("plateau", context_.plateau->state());
    add("plateau.falls", context_.plateau->falls());
  }
  return state;
}

bool Trainer::evaluation_due(Index before, Index steps_done) const {
  return has_evaluation() && context_.settings.evaluate_every.is_due(context_.plan.before(before),
                                                                     context_.plan.before(steps_done));
}

bool Trainer::checkpoint_due(Index before, Index steps_done) const {
  if (context_.saving == nullptr) return false;
  if (context_.control.checkpoint_due()) return true;
  if (steps_done == context_.plan.steps && saves_last()) return true;
  return context_.saving->every.is_due(context_.plan.before(before), context_.plan.before(steps_done));
}

// The next number of steps after which there is an evaluation, a checkpoint or a sample of an average: once
// one is due, it stays so.
Index Trainer::next_stop(Index steps_done) const {
  const auto nothing_due = [&](Index stop) {
    return !evaluation_due(steps_done, stop) && !checkpoint_due(steps_done, stop) &&
           !context_.plan.averages_between(steps_done, stop);
  };
  return first_index({steps_done + 1, context_.plan.steps}, nothing_due);
}

void Trainer::save(IfBusy rule) {
  context_.control.checkpoint_taken();
  if (context_.saving == nullptr) return;
  note_phase(Phase::kCheckpoint);
  Saving& saving = *context_.saving;
  const OutsideSpan span(context_.tracer, TraceKind::kCheckpoint);
  const Index step = loop_->progress().steps;
  // Before the first step there is nothing to lose, but for the best weights.
  const bool nothing_done = step == 0 && rule == IfBusy::kLeaveOut;
  if (nothing_done || saving.writer.has(step)) return;
  const bool wanted = rule == IfBusy::kWait || saving.wait || stops() || step == context_.plan.steps;
  if (wanted) saving.writer.finish();
  CheckpointHeader header = saving.header;
  header.progress = loop_->progress();
  header.metrics_bytes = context_.observer.written_bytes();
  header.evaluated = evaluated_ == step;
  header.seconds = loop_->seconds();
  header.incomplete_files = context_.observer.incomplete_files();
  SavedState state = saved_state();
  if (is_averaged()) context_.average->add_training_weights(state, context_.strategy.gather_model());
  const ModelValues values = gather_model();
  std::optional<StagedModel> staged;
  if (context_.pipeline != nullptr) {
    offset_by_stage(*context_.pipeline, state);
    staged.emplace(*context_.pipeline, context_.model, values);
  }
  saving.writer.start({.header = header,
                       .state = state,
                       .stored = values,
                       .layout = &context_.model.whole().stored_layout(),
                       .input = context_.model.input(),
                       .texts = saving.texts,
                       .staged = staged ? &*staged : nullptr});
}

// The checkpoint of the best evaluation so far is kept, and made if its step has none: training waits for it,
// because no later checkpoint can stand for it.
void Trainer::evaluate(Evaluation* evaluation) {
  note_phase(Phase::kEvaluation);
  const OutsideSpan span(context_.tracer, TraceKind::kEvaluation);
  const ModelValues values = kept_values();
  const std::optional<EvalMetrics> metrics = evaluation->run(values, interrupted());
  if (!metrics) return;
  std::string fall;
  last_evaluation_ = metrics;
  last_evaluation_->progress = has_other_weights() ? best_->progress : loop_->progress();
  const bool chooses = evaluation == context_.validation;
  if (chooses && context_.early_stopping != nullptr) context_.early_stopping->look(*last_evaluation_);
  if (chooses) fall = adapt_lr(*last_evaluation_);
  if (context_.comm.rank() == 0) {
    const bool writes = context_.continue_sample && evaluation == evaluation_during();
    if (writes && std::isfinite(metrics->loss)) last_evaluation_->sample = context_.continue_sample(values);
    context_.observer.on_evaluation(*last_evaluation_);
    if (!fall.empty()) log_info("{}", fall);
  }
  evaluated_ = loop_->progress().steps;
  if (!chooses || !keeps_best() || !context_.saving->best->improves(*last_evaluation_)) return;
  best_evaluation_ = last_evaluation_;
  best_weights_.keep(values, loop_->progress().steps);
  save(IfBusy::kWait);
  context_.saving->writer.mark_best(loop_->progress().steps);
}

// Schedule plateau: lowers the learning rate of the next steps if that is due. Returns the line for the log,
// "" if the rate stays as it is.
std::string Trainer::adapt_lr(const EvalMetrics& validation) {
  const Index next = validation.progress.steps;
  if (context_.plateau == nullptr || next >= context_.plan.steps || ends_early()) return "";
  const double before = context_.lr(next);
  const bool falls = context_.plateau->look(validation);
  const double now = context_.lr(next);
  if (!falls || now == before) return "";
  return fmt::format("the learning rate falls from {:.6g} to {:.6g} after step {}: {}", before, now,
                     with_commas(next), context_.plateau->describe());
}

// *Collective.* The model as it is evaluated and saved now.
ModelValues Trainer::gather_model() {
  if (is_averaged()) return context_.average->gather_model();
  return {context_.strategy.gather_model(), context_.states.gather()};
}

// *Collective.* A uniform average takes in the weights as they are. Its moments are measured under the new
// average, and hold until the next time.
void Trainer::average_weights() {
  context_.average->add(context_.strategy.gather_model(), {});
  recompute_average_moments(context_.settings.calibration_steps > 0 ? context_.settings.calibration_steps
                                                                    : kAverageBatches);
}

// Before evaluations. An exponential average of the weights has one of the moments beside it.
void Trainer::recompute_moments() {
  if (context_.settings.calibration_steps == 0 || context_.model.whole().state_layout().size == 0) return;
  if (!is_averaged()) {
    loop_->recompute_moments(std::min(context_.settings.calibration_steps, context_.plan.steps),
                             context_.strategy.gather_model());
  } else if (!context_.average->is_uniform()) {
    recompute_average_moments(context_.settings.calibration_steps);
  }
}

// *Collective.* Training goes on with the running moments that it had.
void Trainer::recompute_average_moments(Index batches) {
  if (context_.model.whole().state_layout().size == 0) return;
  const ReplicaStates::Copy before = context_.states.copy();
  loop_->recompute_moments(std::min(batches, context_.plan.steps), context_.average->gather_model().weights);
  context_.average->set_moments(context_.states.gather());
  context_.states.restore(before);
}

}  // namespace lockstep
