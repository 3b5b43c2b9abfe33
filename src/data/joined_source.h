// Several data sets of the same shape, one after the other, as one.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/data/record_source.h"

namespace lockstep {

/// The parts, in order, as one data set called `name`; a single part is passed on. Requires at least one, all
/// of the same format. Errors: DataError if their records differ in shape.
std::unique_ptr<RecordSource> join_sources(std::vector<std::unique_ptr<RecordSource>> parts,
                                           const std::string& name);

}  // namespace lockstep
