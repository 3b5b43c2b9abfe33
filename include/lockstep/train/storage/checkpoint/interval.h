// How often something is done: by how far training has come, or by the clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/optim/schedule.h"

namespace lockstep {

/// "500 steps", "2000000 samples", "10 minutes", "1 epoch", "never".
struct Interval {
  std::optional<Duration> training;
  std::optional<double> seconds;

  bool ever() const { return training || seconds; }
  /// Whether a border of the interval lies in a step that leads from `before` to `after`. Never by the clock.
  bool is_due(const Progress& before, const Progress& after) const;
};

/// Also seconds and hours. Errors: ConfigError naming `key` and the text.
Interval parse_interval(std::string_view key, std::string_view text);

/// An interval that no clock decides, so that a run is the same each time. Errors as above, also for a time
/// by the clock.
Interval parse_training_interval(std::string_view key, std::string_view text);

/// Seconds of "50 minutes", "1 second", "0.5 hours"; none if the text is anything else, or not above 0.
std::optional<double> clock_seconds(std::string_view text);

}  // namespace lockstep
