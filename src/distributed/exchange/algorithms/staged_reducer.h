// The exchange that carries out stages (see stages.h), bucket by bucket: several buckets are under way at a
// time, each on a channel of its own, so that their messages cannot be taken for each other's.
#pragma once

#include <memory>
#include <string>

#include "distributed/exchange/stages.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {

/// *Collective* over `comm`. In place, in the one partial sum that each rank has. Nothing in it is collective
/// after that: ranks may hand in buckets at different moments, as long as the order is the same.
std::unique_ptr<Reducer> make_staged_reducer(Communicator& comm, const Plan& plan, const MakeStages& stages);

/// Bytes and messages of `rank` in a staged reduction, and the memory that it takes; `on_node`: ranks of a
/// node.
AlgorithmCosts staged_costs(const Plan& plan, Index rank, Index on_node, const MakeStages& stages);

/// The entry of an algorithm that is nothing but stages.
AlgorithmEntry staged_entry(const std::string& name, const std::string& help, const MakeStages& stages);

}  // namespace lockstep
