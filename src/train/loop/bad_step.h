// The reports of a loop on a step whose loss or gradient is not finite, or of which batch norm had single
// values.
#pragma once

#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/loop/gradient_step.h"

namespace lockstep {

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
/// `found`: LocalSteps::late_bad_number(), in the same words on all ranks.
[[noreturn]] void stop_on_late_bad_number(const std::string& found);

}  // namespace lockstep
