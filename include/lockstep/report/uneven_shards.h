// The warning that the replicas' shards do not hold about the same share of each class.
#pragma once

#include <map>
#include <span>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// Samples by class, of the classes that occur. (A model may have 10^9 outputs.)
using ClassCounts = std::map<Index, double>;

/// `shards[replica]`: what was counted of its shard. Names a class whose share of a shard is far from its
/// share of all samples, by more than chance explains; "" if there is none.
std::string describe_uneven_shards(std::span<const ClassCounts> shards);

}  // namespace lockstep
