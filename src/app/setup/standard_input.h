// Standard input as a file that all ranks can read, again and from any byte on.
#pragma once

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// *Collective.* Reads rank 0's standard input to its end. From then on standard input of each rank is a file
/// with these bytes: a copy in the directory of temporary files (TMPDIR), without a name, so that it is gone
/// with the process. Errors: AgreedError.
void spool_standard_input(Communicator& comm);

}  // namespace lockstep
