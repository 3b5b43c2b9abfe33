#include "lockstep/optim/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

struct UnitName {
  std::string_view name;  // singular; an s may follow
  Duration::Unit unit;
};

constexpr std::array kUnitNames{UnitName{"step", Duration::Unit::kSteps},
                                UnitName{"sample", Duration::Unit::kSamples},
                                UnitName{"epoch", Duration::Unit::kEpochs}};

struct Scaling {
  std::string name;
  double (*factor)(double ratio);  // factor of the lr, for a batch `ratio` times the reference batch
};

// Linear: Goyal et al. 2017, section 2.1. Square root: Krizhevsky 2014, section 3.2.
std::span<const Scaling> scalings() {
  static const std::array kScalings{Scaling{"none", [](double) { return 1.0; }},
                                    Scaling{"linear", [](double ratio) { return ratio; }},
                                    Scaling{"sqrt", [](double ratio) { return std::sqrt(ratio); }}};
  return kScalings;
}

double scaled_lr(const ScheduleOptions& options, Index global_batch) {
  const Scaling& scaling = find_entry(scalings(), "lr_scaling", options.lr_scaling);
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(options.lr_reference_batch);
  return options.lr * scaling.factor(ratio);
}

// The point of the run that lies `length` after its start, or its end if that comes first.
Progress point_after(const Duration& length, const Progress& whole_run) {
  const double whole = length.measure(whole_run);
  const double share = whole > length.value ? length.value / whole : 1;
  return {.steps = std::llround(share * static_cast<double>(whole_run.steps)),
          .samples = std::llround(share * static_cast<double>(whole_run.samples)),
          .epochs = share * whole_run.epochs};
}

// Progress from `start` to `now`; never negative, though `start` is rounded where steps are of unequal size.
Progress progress_since(const Progress& start, const Progress& now) {
  return {.steps = std::max<Index>(0, now.steps - start.steps),
          .samples = std::max<Index>(0, now.samples - start.samples),
          .epochs = std::max(0.0, now.epochs - start.epochs)};
}

[[noreturn]] void refuse(std::string_view key, std::string_view text, std::string_view problem) {
  throw ConfigError(
      "{} = {}: {}; give a number and a unit, such as '500 steps', '64000 samples' or '2.5 epochs'", key,
      in_quotes(text), problem);
}

}  // namespace

double Duration::measure(const Progress& progress) const {
  switch (unit) {
    case Unit::kSteps:
      return static_cast<double>(progress.steps);
    case Unit::kSamples:
      return static_cast<double>(progress.samples);
    case Unit::kEpochs:
      return progress.epochs;
  }
  return 0;
}

Duration parse_duration(std::string_view key, std::string_view text) {
  const std::string_view duration = trimmed(text);
  const char* const end = duration.data() + duration.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(duration.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value)) refuse(key, text, "it does not start with a number");
  if (value < 0) refuse(key, text, "the number is negative");
  std::string_view unit = trimmed({rest, end});
  if (unit.empty()) refuse(key, text, "the unit is missing");
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (const UnitName& known : kUnitNames) {
    if (unit != known.name) continue;
    if (known.unit != Duration::Unit::kEpochs && value != std::floor(value)) {
      refuse(key, text, "only epochs can be divided");
    }
    return {.value = value, .unit = known.unit};
  }
  refuse(key, text, "the unit is unknown");
}

bool follows_evaluations(const ScheduleOptions& options) {
  return find_entry(decay_catalog(), "schedule", options.schedule).follows_evaluations;
}

Schedule::Schedule(const ScheduleOptions& options, const Progress& whole_run, Index global_batch)
    : peak_lr_(scaled_lr(options, global_batch)),
      warmup_from_(options.warmup_from),
      warmup_(parse_duration("train.warmup", options.warmup)),
      warmup_end_(point_after(warmup_, whole_run)),
      decay_length_(progress_since(warmup_end_, whole_run)),
      decay_(find_entry(decay_catalog(), "schedule", options.schedule)
                 .make({.options = options, .peak_lr = peak_lr_, .warmup_end = warmup_end_})) {
  error_if(options.end_lr > peak_lr_,
           "train.end_lr is {}, above the peak of {} (train.lr, scaled): the learning rate would rise",
           options.end_lr, peak_lr_);
}

double Schedule::lr(const Progress& now) const {
  const double progress = warmup_.measure(now);
  if (progress < warmup_.value) {
    return peak_lr_ * (warmup_from_ + (1 - warmup_from_) * progress / warmup_.value);
  }
  return peak_lr_ * decay_(progress_since(warmup_end_, now), decay_length_);
}

}  // namespace lockstep
