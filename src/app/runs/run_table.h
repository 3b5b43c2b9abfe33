// Runs side by side: what differs in their configs, and what came of it. For a terminal, as CSV and as JSON.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/history/viewed_run.h"

namespace lockstep {

/// Sorts the best first: by what each run was kept by ("best"; runs of one measure together), by a measure of
/// the last evaluation such as "accuracy", by "steps", "seconds" or "run", or by a key such as "train.lr",
/// numbers in ascending order. Runs without such a value come last. Errors: ConfigError for another `by`.
void sort_runs(std::vector<ViewedRun>& runs, const std::string& by);

std::string to_text(const std::vector<ViewedRun>& runs);
std::string to_csv(const std::vector<ViewedRun>& runs);
std::string compared_json(const std::vector<ViewedRun>& runs);

}  // namespace lockstep
