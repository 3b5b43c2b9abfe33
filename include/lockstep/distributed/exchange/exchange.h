// The exchange in which every worker gets the whole sum: an algorithm for each bucket, named in the config or
// chosen for its size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/options.h"

namespace lockstep {

/// The algorithm of `auto` without calibration: memory where ranks share it, else MPI.
const AlgorithmEntry& algorithm_by_rule(const Nodes& nodes);

/// By bucket of the plan.
using AlgorithmChoice = std::vector<const AlgorithmEntry*>;

/// *Collective.* Each bucket by an algorithm of its own, at most one of them in node memory. `remark`: behind
/// what algorithm() says. Errors: AgreedError if one cannot be made.
std::unique_ptr<Reducer> make_bucketwise_reducer(const AlgorithmContext& context,
                                                 const AlgorithmChoice& choice,
                                                 const std::string& remark = {});

/// *Collective.* The exchange of the options where every worker gets the whole sum; what the context says
/// about reduction and overlap is taken from options and plan. Errors: AgreedError if the algorithm cannot
/// run on these nodes, or if shared memory is not to be had (`auto` does without it).
std::unique_ptr<Reducer> make_exchange(AlgorithmContext context, const DistOptions& options);

/// The costs of make_exchange(), with `auto` by rule.
AlgorithmCosts exchange_costs(const CostModelInput& question, Index rank);

/// Those that give what the options ask for on these nodes, where the sum is exact.
std::vector<const AlgorithmEntry*> possible_algorithms(const DistOptions& options, const Nodes& nodes);

/// Those among which `auto` takes the fastest for each bucket; without calibration the one of the rule. Of
/// those in node memory only that of the rule: the others would do the same there. None that suffers from
/// overlap, which calibration, with one bucket alone, would not see.
std::vector<const AlgorithmEntry*> automatic_algorithms(const DistOptions& options, const Plan& plan,
                                                        const Nodes& nodes);

/// Those that the reduction of the options rules out, and why, in a sentence; "" if there are none.
std::string note_on_order(const DistOptions& options);

}  // namespace lockstep
