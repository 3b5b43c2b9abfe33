// A run in plain sentences, and what its reader should look at.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/page/report_page.h"

namespace lockstep {

/// A story of the run: model, data, quality and length. No HTML.
std::vector<std::string> tell_story(const PageRun& run);

/// Why it ended, numbers that are not finite, weights that were kept from long before the end, ranks that
/// waited, classes that are recognised badly, warnings of the log. No HTML.
std::vector<std::string> things_to_look_at(const PageRun& run);

/// The evaluation whose confusion matrix is shown: of the test set, else of the validation set; null without
/// one.
const EvaluationHistory* shown_confusion(const PageRun& run);

/// The name of a measure in a title: "Learning rate" for "lr".
std::string measure_title(const std::string& measure);

}  // namespace lockstep
