// A run as the page of `trainer report` shows it, from its directory alone.
#pragma once

#include <filesystem>

#include "lockstep/report/run_description.h"

namespace lockstep {

/// Never fails for what is in the directory: what cannot be read is missing, and the state or the warnings
/// say so.
RunDescription describe_run(const std::filesystem::path& directory);
/// The runs that find_runs() finds. Errors: as of that.
std::vector<RunDescription> describe_runs(const std::vector<std::string>& names);

}  // namespace lockstep
