#include "lockstep/report/time_estimate.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kFirstEstimateSeconds = 0.5;
constexpr double kRounding = 1e-9;

std::size_t index_of(Split split) {
  return split == Split::kValidation ? 0 : 1;
}

}  // namespace

Index EvaluationSchedule::still_due(Split split, const Progress& progress, const Progress& whole) const {
  if (!(split == Split::kValidation ? validation : test)) return 0;
  const bool in_between = split == Split::kValidation || !validation;
  if (!in_between || !every) return 1;
  // An evaluation that is due with the last step is the one at the end.
  const double before_end = std::ceil(every->measure(whole) / every->value - kRounding) - 1;
  const double done = std::floor(every->measure(progress) / every->value + kRounding);
  return static_cast<Index>(std::max(before_end - done, 0.0)) + 1;
}

void TimeEstimate::on_step(const Progress& progress, double seconds) {
  if (!first_) {
    first_ = progress;
  } else {
    seconds_ += std::max(seconds - end_of_last_ - evaluating_, 0.0);
  }
  last_ = progress;
  end_of_last_ = seconds;
  evaluating_ = 0;
}

void TimeEstimate::on_evaluation(Split split, double seconds) {
  Evaluated& evaluated = evaluated_.at(index_of(split));
  ++evaluated.times;
  evaluated.seconds += seconds;
  evaluating_ += seconds;
}

std::optional<double> TimeEstimate::rate() const {
  if (!first_ || seconds_ < kFirstEstimateSeconds || last_.samples <= first_->samples) return std::nullopt;
  return static_cast<double>(last_.samples - first_->samples) / seconds_;
}

std::optional<double> TimeEstimate::seconds_left() const {
  const std::optional<double> samples_per_second = rate();
  if (!samples_per_second) return std::nullopt;
  double left = static_cast<double>(whole_.samples - last_.samples) / *samples_per_second;
  for (const Split split : {Split::kValidation, Split::kTest}) {
    left += static_cast<double>(evaluations_.still_due(split, last_, whole_)) * evaluation_seconds(split);
  }
  return left;
}

// The mean so far; that of the other set where this one was not evaluated yet.
double TimeEstimate::evaluation_seconds(Split split) const {
  const Evaluated& own = evaluated_.at(index_of(split));
  const Evaluated& other = evaluated_.at(1 - index_of(split));
  const Evaluated& seen = own.times > 0 ? own : other;
  return seen.times > 0 ? seen.seconds / static_cast<double>(seen.times) : 0;
}

}  // namespace lockstep
