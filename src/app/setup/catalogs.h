// The link of the catalogs with the config: the names that options may take, and which keys the chosen
// entries read.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

const KnownNames& known_names();
/// Every option, with its default.
std::span<const Option> known_options();
/// With those of earlier versions behind them.
std::span<const Option> readable_options();
/// The keys that could change what comes of a run, and their values as texts; without those that have none.
/// The keys of names_no_result() are left out.
std::vector<std::pair<std::string, std::string>> result_options(const Config& config);
std::vector<Choice> choices(const Config& config);

}  // namespace lockstep
