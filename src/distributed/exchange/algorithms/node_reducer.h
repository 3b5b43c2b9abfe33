// The exchange through memory that the ranks of a node share; see node_reducer.cpp.
#pragma once

#include <memory>
#include <string>

#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {

/// *Collective.* `user`: who asks for it, in errors.
std::unique_ptr<Reducer> make_node_reducer(const AlgorithmContext& context, const std::string& user);

AlgorithmCosts node_reducer_costs(const CostModelInput& question, Index rank);

}  // namespace lockstep
