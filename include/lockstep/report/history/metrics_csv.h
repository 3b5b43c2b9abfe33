// The metrics of runs as one table for spreadsheets and statistics: a line for each line of metrics.jsonl, a
// column for each number in any of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The first columns are run, kind, split, step, epoch and samples_seen. What a line lacks, and what is not
/// finite, is empty; arrays (confusion, workers) are left out. `metrics`: the files; `names`: of the runs, as
/// many. Returns what is wrong with the files, with their names. Errors: DataError.
std::vector<std::string> write_metrics_csv(const std::vector<std::filesystem::path>& metrics,
                                           const std::vector<std::string>& names,
                                           const std::function<void(std::string_view)>& write);

}  // namespace lockstep
