// report.html, written when a run has ended.
#pragma once

#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// Rank 0, after summary.json is written. A page that cannot be made is a warning: trainer report makes it
/// later. One of very many lines of metrics is left to that, too, as is one without its library.
void write_run_page(const RunDirectory& run);

}  // namespace lockstep
