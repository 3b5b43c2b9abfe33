// How many records of a data set are of each class. Whole numbers, so they are the same on any number of
// ranks.
#pragma once

#include <vector>

#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

/// *Collective.* By class_of() their targets, which obey the rule; each rank reads its share of the data set.
/// Errors, the same on all ranks: DataError.
std::vector<Index> count_classes(const RecordSource& source, const TargetRule& rule, Index classes,
                                 PeerGroup& peers);

}  // namespace lockstep
