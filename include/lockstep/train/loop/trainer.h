// A training from its first step to its last evaluation.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/train/loop/training_context.h"
#include "lockstep/train/loop/training_result.h"
#include "lockstep/train/loop/weight_average.h"

namespace lockstep {

class Trainer {
 public:
  explicit Trainer(const TrainingContext& context);

  /// *Collective.* From the strategy's weights as they are to the end of the plan. Errors: AgreedError (exit
  /// code 5) if the loss or a gradient is not finite; the weights are then those of the last good step.
  TrainingResult run();

 private:
  void begin();
  SavedState saved_state();
  bool has_evaluation() const { return context_.validation != nullptr || context_.test != nullptr; }
  bool evaluates_at_start() const { return context_.settings.evaluates_at_start && has_evaluation(); }
  // Whether one is due in a step after `before`, up to the one that ends with `steps_done`.
  bool evaluation_due(Index before, Index steps_done) const;
  bool checkpoint_due(Index before, Index steps_done) const;
  Index next_stop(Index steps_done) const;
  bool stops() const { return context_.control.stops(); }
  // The fate of a checkpoint if the one before it is still being written.
  enum class IfBusy { kLeaveOut, kWait };
  void save(IfBusy rule);
  bool is_averaged() const { return context_.average != nullptr && context_.average->has_begun(); }
  ModelValues gather_model();
  void average_weights();
  void recompute_moments();
  void recompute_average_moments(Index batches);
  void evaluate(Evaluation* evaluation);
  std::string adapt_lr(const EvalMetrics& validation);
  bool ends_early() const { return context_.early_stopping != nullptr && context_.early_stopping->is_due(); }
  bool keeps_best() const { return context_.saving != nullptr && context_.saving->best.has_value(); }
  void finish_run();
  void choose_weights();
  void calibrate();
  bool has_other_weights() const;
  void pause_if_due();
  bool saves_last() const;

  TrainingContext context_;
  std::unique_ptr<UpdateLoop> loop_;
  std::optional<EvalMetrics> last_evaluation_;
  BestWeights best_weights_;
  bool paused_ = false;
  std::optional<BestResult> best_;  // once the weights of the model are chosen
  std::optional<Calibration> calibration_;
};

}  // namespace lockstep
