// Which reducers there are, and the one that fits the options.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"

namespace lockstep {

/// The complete subtrees of the fixed tree in a range of replicas that have a sample in them (`samples`: by
/// replica): those that a rank which hosts the range contributes, in order.
std::vector<Range> present_subtrees(Index replicas, Range hosted, std::span<const Index> samples);

/// The exchange by messages that the options ask for: through their codec and, to all, by MPI or along the
/// fixed tree. make_exchange() has other ways too.
std::unique_ptr<Reducer> make_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                      Delivery delivery);

/// make_reducer() without a codec. `overlaps`: see make_native_reducer().
std::unique_ptr<Reducer> make_exact_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery, bool overlaps);

/// Plain MPI, to all: the sum's order is the library's choice. `overlaps`: a bucket travels while something
/// else goes on; else bucket_ready() waits for it.
std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, bool overlaps);

/// Each rank owns a slice of each bucket (Plan::slices), gets the others' partial sums of it, adds them and,
/// if asked, gives the result to all; else only the own slices of what finish() gives are sums. Ordered:
/// along the fixed tree, the same bits on any number of ranks. Native: rank by rank.
std::unique_ptr<Reducer> make_owner_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery);

/// The owner reducer with messages that go through the codec of the options, which is not fp32: each rank has
/// one partial sum, and these are added rank by rank.
std::unique_ptr<Reducer> make_lossy_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                            Delivery delivery);

}  // namespace lockstep
