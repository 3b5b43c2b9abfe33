// The learning rate as a pure function of how far the run has come, in samples, epochs or steps. It never
// sees the number of ranks: changing N alone changes nothing here.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/optim/options.h"

namespace lockstep {

/// How far a run has come: what lies behind it when a step begins.
struct Progress {
  Index steps = 0;
  Index samples = 0;
  double epochs = 0;
};

/// A length of training: "500 steps", "64000 samples", "2.5 epochs".
struct Duration {
  enum class Unit { kSteps, kSamples, kEpochs };
  double value = 0;
  Unit unit = Unit::kSteps;

  /// `progress` in this unit.
  double measure(const Progress& progress) const;
};

/// Parses "5 epochs"; the singular is fine too. Errors: ConfigError naming `key` and the text.
Duration parse_duration(std::string_view key, std::string_view text);

/// The part of the schedule after warm-up: a factor on the peak learning rate. `now` and `length`: progress
/// since the end of the warm-up, and the whole run's after it. A decay over the whole run measures its share
/// in samples.
using Decay = std::function<double(const Progress& now, const Progress& length)>;

/// The arguments that a decay is made from.
struct DecayContext {
  const ScheduleOptions& options;
  double peak_lr = 0;
  Progress warmup_end;  ///< progress from which the decay counts
};

struct DecayEntry {
  std::string name;
  std::string help;
  std::vector<std::string> options;  ///< config keys that it reads
  std::function<Decay(const DecayContext&)> make;
  bool follows_evaluations = false;  ///< what it is multiplied by depends on the validation set: see Plateau
};

/// Every schedule there is. To add one: src/README.md.
std::span<const DecayEntry> decay_catalog();

/// Whether the learning rate falls by what evaluations find.
bool follows_evaluations(const ScheduleOptions& options);

/// Learning rate of each step: linear warm-up from warmup_from * peak to the peak (Goyal et al. 2017,
/// section 2.2), then the decay. During a warm-up of W the factor is from + (1 - from) * now / W, and the
/// decay counts from its end. A warm-up longer than the run is cut off with it.
class Schedule {
 public:
  /// `whole_run`: progress at its end. `global_batch`: samples per step, for lr_scaling. Requires lr > 0.
  /// Errors: ConfigError for an unknown name or a bad duration.
  Schedule(const ScheduleOptions& options, const Progress& whole_run, Index global_batch);

  double lr(const Progress& now) const;
  /// lr times the scaling for the batch.
  double peak_lr() const { return peak_lr_; }

 private:
  double peak_lr_;
  double warmup_from_;
  Duration warmup_;
  Progress warmup_end_;
  Progress decay_length_;
  Decay decay_;
};

}  // namespace lockstep
