// A short name for the config of a run: two runs have the same if nothing differs that could change what
// comes of them.
#pragma once

#include <string>

#include "app/setup/experiment.h"

namespace lockstep {

/// 16 hexadecimal digits over all keys and values, but for those of names_no_result().
std::string config_digest(const Config& config);

}  // namespace lockstep
