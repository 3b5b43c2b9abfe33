// An exchange in which each bucket has an algorithm of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/dist/algorithm.h"

namespace lockstep {

/// By bucket of the plan.
using AlgorithmChoice = std::vector<const AlgorithmEntry*>;

/// *Collective.* `remark`: behind what algorithm() says. Errors: AgreedError if one of them cannot be made.
std::unique_ptr<Reducer> make_bucketwise_reducer(const AlgorithmContext& context,
                                                 const AlgorithmChoice& choice,
                                                 const std::string& remark = {});

}  // namespace lockstep
