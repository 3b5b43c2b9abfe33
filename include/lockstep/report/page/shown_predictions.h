// The single predictions that a page shows: evaluation.json of a run directory. Written once, at the end of
// a run; read by trainer report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lockstep/train/evaluation/evaluation_details.h"

namespace lockstep {

/// evaluation.json. A curve has at most 2,000 points, those of several classes less.
std::string to_json(const EvaluationDetails& details);

/// Reads such a file as the page has it: split, samples, curves, fits, columns and worst, with all points and
/// records. Lists that belong together are equally long, and each picture has the bytes of its size. Errors:
/// DataError for a text that is no such file.
nlohmann::ordered_json read_shown_predictions(const std::string& json);

}  // namespace lockstep
