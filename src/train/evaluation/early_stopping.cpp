#include "lockstep/train/evaluation/early_stopping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// The number in "5 evaluations"; nothing for another unit.
std::optional<double> parse_evaluations(std::string_view text) {
  const std::size_t unit = text.find("evaluation");
  if (unit == std::string_view::npos) return std::nullopt;
  const std::string_view end = text.substr(unit);
  if (end != "evaluation" && end != "evaluations") return std::nullopt;
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + unit, value);
  const bool blanks =
      std::string_view(rest, text.data() + unit).find_first_not_of(' ') == std::string_view::npos;
  if (error != std::errc() || !blanks || value != std::floor(value)) return std::nullopt;
  return value;
}

}  // namespace

Patience::Patience(std::string_view key, std::string_view text) : text_(text) {
  const std::optional<double> evaluations = parse_evaluations(text);
  if (evaluations) {
    evaluations_ = *evaluations;
  } else {
    try {
      duration_ = parse_duration(key, text);
    } catch (const ConfigError& error) {
      throw ConfigError("{}; or '5 evaluations'", error.what());
    }
  }
  const double value = duration_ ? duration_->value : evaluations_;
  error_if(value <= 0, "{} = {}: that is no time at all; give one above 0, such as '5 epochs'", key,
           in_quotes(text));
}

bool Patience::is_over(const Progress& before, const Progress& now, Index evaluations) const {
  if (!duration_) return static_cast<double>(evaluations) >= evaluations_;
  // Epochs are no whole numbers: what is missing by rounding is not missing.
  return duration_->measure(now) - duration_->measure(before) >= duration_->value * (1 - 1e-9);
}

EarlyStopping::EarlyStopping(Measure measure, Patience patience, double least)
    : measure_(std::move(measure)), patience_(std::move(patience)), least_(least) {
  state_[kValue] = std::numeric_limits<double>::quiet_NaN();
  state_[kLast] = -1;  // the one before the first step counts, too
}

Progress EarlyStopping::progress_at(std::size_t offset) const {
  return {.steps = static_cast<Index>(state_[offset]),
          .samples = static_cast<Index>(state_[offset + 1]),
          .epochs = state_[offset + 2]};
}

void EarlyStopping::note_progress(std::size_t offset, const Progress& progress) {
  state_[offset] = static_cast<double>(progress.steps);
  state_[offset + 1] = static_cast<double>(progress.samples);
  state_[offset + 2] = progress.epochs;
}

void EarlyStopping::look(const EvalMetrics& evaluation) {
  const Progress& now = evaluation.progress;
  if (now.steps <= progress_at(kLast).steps) return;
  note_progress(kLast, now);
  positive_ = evaluation.positive();
  const std::optional<double> found = measure_.of(evaluation);
  if (found && measure_.is_better(*found, state_[kValue], least_)) {
    state_[kValue] = *found;
    note_progress(kBest, now);
    state_[kEvaluations] = 0;
  } else {
    state_[kEvaluations] += 1;
  }
}

void EarlyStopping::wait_again() {
  note_progress(kBest, progress_at(kLast));
  state_[kEvaluations] = 0;
}

std::string EarlyStopping::waited() const {
  return fmt::format("no better {} of the validation set for {}", name_with_class(measure_.name(), positive_),
                     patience_.text());
}

std::string EarlyStopping::describe() const {
  const std::string best = std::isnan(state_[kValue])
                               ? "it never was a number"
                               : fmt::format("the best was {:.6g} after step {}", state_[kValue],
                                             with_commas(progress_at(kBest).steps));
  return fmt::format("{}; {}", waited(), best);
}

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

bool smaller_is_better(const std::string& measure) {
  for (const MetricEntry& entry : metric_catalog()) {
    if (entry.name == measure) return entry.smaller_is_better;
  }
  return measure == "loss";
}

Measure::Measure(std::string name, const std::vector<std::string>& metrics, bool has_accuracy)
    : name_(std::move(name)) {
  std::vector<std::string> known{"loss"};
  if (has_accuracy) known.emplace_back("accuracy");
  known.insert(known.end(), metrics.begin(), metrics.end());
  error_if(std::ranges::find(known, name_) == known.end(),
           "train.early_stopping_metric is {}: expected one of '{}'; more measures come with "
           "eval.metrics",
           in_quotes(name_), fmt::join(known, "', '"));
  smaller_is_better_ = smaller_is_better(name_);
}

std::optional<double> Measure::of(const EvalMetrics& evaluation) const {
  std::optional<double> found = name_ == "loss" ? evaluation.loss : evaluation.accuracy;
  for (const MetricValue& other : evaluation.others) {
    if (other.name == name_) found = other.value;
  }
  if (!found || !std::isfinite(*found)) return std::nullopt;
  return found;
}

bool Measure::is_better(double now, double before, double least) const {
  if (std::isnan(before)) return true;
  return smaller_is_better_ ? now < before - least : now > before + least;
}

BestEvaluation::BestEvaluation(Measure measure)
    : measure_(std::move(measure)), state_{std::numeric_limits<double>::quiet_NaN(), 0} {}

bool BestEvaluation::improves(const EvalMetrics& evaluation) {
  const std::optional<double> found = measure_.of(evaluation);
  if (!found || !measure_.is_better(*found, value())) return false;
  state_ = {*found, static_cast<double>(evaluation.progress.steps)};
  return true;
}

}  // namespace lockstep
