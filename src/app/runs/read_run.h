// Runs read back from their directories: run.json, config.toml and metrics.jsonl.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/report/history/viewed_run.h"

namespace lockstep {

/// Never fails for what is in the directory: what is damaged there is the state of the run, with the reason.
ViewedRun read_run(const std::filesystem::path& directory);

/// The runs that the names stand for, in order: the directory of a run, or one with runs in it at any depth,
/// which are sorted by name. Each once. Errors: ConfigError for a name without any.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& names);
std::vector<ViewedRun> read_runs(const std::vector<std::filesystem::path>& directories);

// Runs side by side: what differs in their configs, and what came of it. For a terminal, as CSV and as JSON.

/// Sorts the best first: by what each run was kept by ("best"; runs of one measure together), by a measure of
/// the last evaluation such as "accuracy", by "steps", "seconds" or "run", or by a key such as "train.lr",
/// numbers in ascending order. Runs without such a value come last. Where runs divide one text into different
/// tokens, bits_per_character becomes the measure that decides, here and in what shows these runs later.
/// Errors: ConfigError for another `by`.
void sort_runs(std::vector<ViewedRun>& runs, const std::string& by);

/// Runs of different data or losses stand in tables of their own. Of a limited `width` in characters: the
/// columns that have room, and the names of the others.
std::string to_text(const std::vector<ViewedRun>& runs, int width);
inline constexpr int kAllColumns = std::numeric_limits<int>::max();
std::string to_csv(const std::vector<ViewedRun>& runs);
std::string compared_json(const std::vector<ViewedRun>& runs);

}  // namespace lockstep
