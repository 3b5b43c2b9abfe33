// Runs read back from their directories: run.json, config.toml and metrics.jsonl.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/report/history/viewed_run.h"

namespace lockstep {

/// Never fails for what is in the directory: what is damaged there is the state of the run, with the reason.
ViewedRun read_run(const std::filesystem::path& directory);

/// The runs that the names stand for, in order: the directory of a run, or one with runs in it at any depth,
/// which are sorted by name. Each once. Errors: ConfigError for a name without any.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& names);
std::vector<ViewedRun> read_runs(const std::vector<std::string>& names);

}  // namespace lockstep
