// The times that schedules with falls share.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {

/// A step that begins on a border may compute as just before it: 0.3 / 0.1 is less than 3.
inline constexpr double kBorderRounding = 1e-9;

/// train.decay_every. Errors: ConfigError, also for no time at all.
inline Duration parse_decay_every(const ScheduleOptions& options) {
  const Duration every = parse_duration("train.decay_every", options.decay_every);
  if (every.value > 0) return every;
  throw ConfigError(
      fmt::format("train.decay_every = {} is no time at all; give a length above 0, such as '30 epochs'",
                  in_quotes(options.decay_every)));
}

// The measure of time that decays share.

/// The share of `length` that lies behind `now`, in samples: 0 at the start, 1 from the end on.
inline double share_done(const Progress& now, const Progress& length) {
  if (length.samples <= 0) return 0;
  return std::min(1.0, static_cast<double>(now.samples) / static_cast<double>(length.samples));
}

}  // namespace lockstep
