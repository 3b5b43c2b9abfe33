// report.html and evaluation.json, written when a run has ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/report/page/report_page.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// A run with what the page shows of it. Never fails for what is in the directory: a file that cannot be read
/// is a warning of the run.
PageRun read_page_run(const std::filesystem::path& directory);
std::vector<PageRun> read_page_runs(const std::vector<std::string>& names);

/// evaluation.json, which the page is made from. Fails as write_run_page() does.
void write_evaluation_file(const RunDirectory& run, const EvaluationDetails& details);

/// Rank 0, after run.json is. A page that cannot be made is a warning: trainer report makes it
/// later. One of very many lines of metrics is left to that, too, as is one without its library.
void write_run_page(const RunDirectory& run);

}  // namespace lockstep
