// A number of a step that is not finite, and the reports of a loop on it, or on single values of batch norm.
#pragma once

#include <limits>
#include <string>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// The first position in a step, forward and back, where a number is not finite.
struct BadNumber {
  Index order = std::numeric_limits<Index>::max();  ///< orders them; that of "nowhere" is the last
  std::string text;                                 ///< "replica 3: layer 2 'relu' gives ..."
};

/// *Local.* Warns of single values that batch norm had to normalise; `found`: "step 3 gives 2 of 8 replicas".
void warn_of_single_values(const std::string& found);
/// *Collective.* Names the first op whose values, loss or gradient were not finite on some rank; `found`:
/// what this rank knows of it.
std::string describe_bad_number(Communicator& comm, const BadNumber& found);
/// *Collective.* `step`: the one in which, on some rank, the loss or a gradient was not finite; `found`: what
/// this rank knows of it; `good`: steps that the weights have taken; `skipped`: steps left out before. Throws
/// the AgreedError (exit code 5).
[[noreturn]] void stop_on_bad_number(Communicator& comm, const BadNumber& found, Index step, double loss,
                                     Index good, Index skipped = 0);
/// *Collective.* Throws the AgreedError for a number that went bad between two averages of local SGD;
/// `found`: SynchronousStrategy::late_bad_number(), in the same words on all ranks.
[[noreturn]] void stop_on_late_bad_number(const std::string& found);

}  // namespace lockstep
