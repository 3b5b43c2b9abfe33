// Settings that cannot be combined, each row with its reason: a pure function of the config and the number of
// ranks. Nothing is switched off silently: what a row names is refused.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/distributed/options.h"

namespace lockstep {

/// The settings of a config that can conflict.
struct Combination {
  const DistOptions& distribute;
  Index world = 1;    ///< ranks
  Index servers = 0;  ///< of them
  Index replicas = 1;
  Index batch = 1;                        ///< global
  Index replicas_without_rows = 0;        ///< that have no record of the training set
  bool normalises_over_replicas = false;  ///< batch norm sync or group
  bool moments_of_all_replicas = false;   ///< batch norm averaged or sync
  bool skips_bad_steps = false;           ///< train.on_nan skip

  Index workers() const { return world - servers; }
};

struct Refusal {
  std::string combination;  ///< "ordered reduction with async"
  std::string reason;       ///< one sentence, with what to do instead
  std::function<bool(const Combination&)> applies;
};

/// Every row there is. They are asked in order: a later one may count on what an earlier one refuses.
std::span<const Refusal> refusals();

/// Errors: ConfigError with the first row that applies.
void refuse(const Combination& combination);

}  // namespace lockstep
