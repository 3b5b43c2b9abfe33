// The link of the catalogs with the config: the names that options may take, and which keys the chosen
// entries read.
#pragma once

#include <span>
#include <vector>

#include "lockstep/config/check.h"
#include "lockstep/config/option.h"

namespace lockstep {

const KnownNames& known_names();
/// Every option, with its default.
std::span<const Option> known_options();
std::vector<Choice> choices(const Config& config);

}  // namespace lockstep
