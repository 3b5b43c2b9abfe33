// Whether this machine can multiply as the config wants, and the message if it cannot.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/config.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// "native", "emulated" or "none".
std::string to_string(Bf16Support support);

/// How the run multiplies on this rank: "fp32", "bf16", or "bf16, emulated".
std::string describe_precision(const Config& config);

/// *Local*: call it where ranks agree(). Errors: ConfigError if this rank cannot run train.precision.
void refuse_missing_precision(const Config& config);

// The facts about this build that `trainer --version` prints.

std::vector<std::string> build_facts();

}  // namespace lockstep
