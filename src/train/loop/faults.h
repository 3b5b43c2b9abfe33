// Faults on purpose, by debug options: delays, failures, hangs and flipped bits, for tests of what watches.
#pragma once

#include "lockstep/base/types.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/options.h"

namespace lockstep {

/// Waits, hangs or fails, if debug options say so for this rank and step. *Collective* where debug.hang is
/// 'skip': the other ranks wait for the one that leaves it out.
void force_faults(const DebugOptions& debug, Communicator& comm, Index step);
/// *Collective.* Flips a bit of one of the weights on debug.flip_rank.
void flip_bit(const DebugOptions& debug, Communicator& comm, Scalar& weight);

}  // namespace lockstep
