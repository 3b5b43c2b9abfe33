// report.html and evaluation.json, written when a run has ended.
#pragma once

#include "lockstep/train/evaluation/evaluation_details.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// evaluation.json, which the page is made from. Fails as write_run_page() does.
void write_evaluation_file(const RunDirectory& run, const EvaluationDetails& details);

/// Rank 0, after summary.json is written. A page that cannot be made is a warning: trainer report makes it
/// later. One of very many lines of metrics is left to that, too, as is one without its library.
void write_run_page(const RunDirectory& run);

}  // namespace lockstep
