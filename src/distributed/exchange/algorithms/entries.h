// One function per algorithm file; the catalog lists them.
#pragma once

#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {

AlgorithmEntry mpi_entry();
AlgorithmEntry ring_entry();
AlgorithmEntry rabenseifner_entry();
AlgorithmEntry shared_entry();
AlgorithmEntry hierarchical_entry();

}  // namespace lockstep
