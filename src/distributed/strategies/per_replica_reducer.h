// The sum over all replicas of what each of them has in an arena of its own: a rank adds its pieces, bucket
// by bucket, and hands the sums to the exchange.
#pragma once

#include <memory>

#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {

/// A Reducer whose partial sums are single replicas (LocalSums::kPerReplica), and are used up; all ranks get
/// the result.
std::unique_ptr<Reducer> make_per_replica_reducer(const AlgorithmContext& context,
                                                  const DistOptions& options);

}  // namespace lockstep
