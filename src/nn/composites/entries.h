// One function per composite file; the catalog lists them.
#pragma once

#include "lockstep/nn/composite.h"

namespace lockstep {

CompositeEntry residual_entry();
CompositeEntry concat_entry();
CompositeEntry wide_deep_entry();

/// Errors: ConfigError if `term` has not exactly `count` chains (0: at least two).
void expect_chains(const GraphBuilder& graph, const Term& term, const std::string& path, std::size_t count);

}  // namespace lockstep
