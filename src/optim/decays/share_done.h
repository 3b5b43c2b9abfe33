// The measure of time that decays share.
#pragma once

#include <algorithm>

#include "lockstep/optim/schedule.h"

namespace lockstep {

/// The share of `length` that lies behind `now`, in samples: 0 at the start, 1 from the end on.
inline double share_done(const Progress& now, const Progress& length) {
  if (length.samples <= 0) return 0;
  return std::min(1.0, static_cast<double>(now.samples) / static_cast<double>(length.samples));
}

}  // namespace lockstep
