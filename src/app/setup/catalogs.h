// The link of the catalogs with the config: the options with the names that they may take, and which keys the
// chosen entries read.
#pragma once

#include <span>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

const KnownNames& known_names();
/// Every option, declared once for the process.
std::span<const Option> known_options();
/// The keys that could change what comes of a run, without those that have no value. The keys of
/// names_no_result() are left out.
std::vector<Setting> result_options(const Config& config);
/// A strategy that is still to be chosen is none of them.
std::vector<Choice> choices(const Config& config);

}  // namespace lockstep
