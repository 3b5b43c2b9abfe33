#include "lockstep/train/evaluation/plateau.h"

#include <algorithm>

namespace lockstep {

Plateau::Plateau(Measure measure, const ScheduleOptions& options)
    : standstill_(std::move(measure), Patience("train.plateau_patience", options.plateau_patience),
                  options.plateau_min_delta),
      decay_factor_(options.decay_factor),
      end_lr_(options.end_lr) {}

bool Plateau::look(const EvalMetrics& evaluation) {
  standstill_.look(evaluation);
  if (!standstill_.is_due()) return false;
  falls_ += 1;
  standstill_.wait_again();
  return true;
}

// A product, not a power: its bits are the same with any library.
double Plateau::lr(double scheduled) const {
  double lr = scheduled;
  for (double fall = 0; fall < falls_ && lr > end_lr_; ++fall) lr *= decay_factor_;
  return std::max(lr, std::min(scheduled, end_lr_));
}

}  // namespace lockstep
