// y = a + b + ...: the join of residual and wide_deep.
#pragma once

#include <memory>

#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

std::unique_ptr<Layer> make_sum();

// A check that composites share.

/// Errors: ConfigError if `term` has not exactly `count` chains (0: at least two).
void expect_chains(const GraphBuilder& graph, const Term& term, const std::string& path, std::size_t count);

}  // namespace lockstep
