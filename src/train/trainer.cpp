#include "lockstep/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

std::unique_ptr<Pace> make_pace(const TrainingContext& context) {
  if (auto* alone = dynamic_cast<AsynchronousStrategy*>(&context.strategy)) {
    return make_asynchronous_pace(context, *alone);
  }
  return make_synchronous_pace(context, dynamic_cast<SynchronousStrategy&>(context.strategy));
}

}  // namespace

Trainer::Trainer(const TrainingContext& context) : context_(context), pace_(make_pace(context)) {}

TrainingResult Trainer::run() {
  context_.strategy.start();
  context_.states.start();
  Evaluation* during = context_.validation != nullptr ? context_.validation : context_.test;
  const Index steps = context_.plan.steps;
  for (Index done = next_stop(0); done < steps; done = next_stop(done)) {
    pace_->advance(done);
    recompute_moments();
    evaluate(*during);
  }
  pace_->advance(steps);
  recompute_moments();
  if (context_.validation != nullptr) evaluate(*context_.validation);
  if (context_.test != nullptr) evaluate(*context_.test);
  if (last_evaluation_ && !std::isfinite(last_evaluation_->loss)) {
    throw AgreedError(
        "training is complete, but the model gives a loss that is not finite in evaluation: look at the "
        "evaluation data, and at the scale of what goes into batch norm",
        kExitTraining);
  }
  const Progress progress = pace_->progress();
  return {.progress = progress,
          .seconds = pace_->seconds(),
          .samples_per_second = static_cast<double>(progress.samples) / pace_->seconds(),
          .time = pace_->take_shares(),
          .last_evaluation = last_evaluation_,
          .workers = pace_->workers(),
          .skipped_steps = pace_->skipped_steps(),
          .repairs = pace_->repairs()};
}

Index Trainer::evaluations_due(Index steps_done) const {
  const double epochs = context_.plan.before(steps_done).epochs;
  return static_cast<Index>(std::floor(epochs / context_.evaluate_every + 1e-9));
}

// The next number of steps after which there is an evaluation.
Index Trainer::next_stop(Index steps_done) const {
  const Index steps = context_.plan.steps;
  if (context_.validation == nullptr && context_.test == nullptr) return steps;
  Index stop = steps_done + 1;
  while (stop < steps && evaluations_due(stop) == evaluations_due(steps_done)) ++stop;
  return stop;
}

void Trainer::evaluate(Evaluation& evaluation) {
  context_.comm.note_phase(Phase::kEvaluation);
  last_evaluation_ = evaluation.run({context_.strategy.settle(), context_.states.settle()});
  last_evaluation_->progress = pace_->progress();
  if (context_.comm.rank() == 0) context_.observer.on_evaluation(*last_evaluation_);
}

void Trainer::recompute_moments() {
  if (context_.calibration_steps == 0 || context_.model.state_layout().size == 0) return;
  pace_->recompute_moments(std::min(context_.calibration_steps, context_.plan.steps));
}

}  // namespace lockstep
