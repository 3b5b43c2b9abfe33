// A check that composites share.
#pragma once

#include "lockstep/nn/composite.h"

namespace lockstep {

/// Errors: ConfigError if `term` has not exactly `count` chains (0: at least two).
void expect_chains(const GraphBuilder& graph, const Term& term, const std::string& path, std::size_t count);

}  // namespace lockstep
