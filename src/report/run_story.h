// A run in plain sentences, and what its reader should look at.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/report_page.h"

namespace lockstep {

/// A story of the run: model, data, quality and length. No HTML.
std::vector<std::string> tell_story(const RunDescription& run);

/// Why it ended, numbers that are not finite, weights that were kept from long before the end, ranks that
/// waited, classes that are recognised badly, warnings of the log. No HTML.
std::vector<std::string> things_to_look_at(const RunDescription& run);

/// The evaluation whose confusion matrix is shown: of the test set, else of the validation set; null without
/// one.
const EvaluationHistory* shown_confusion(const RunDescription& run);

/// "7", or "7 (boot)" where the name of the class is known.
std::string class_name(const std::vector<std::string>& names, std::size_t index);

/// Precision, recall and number of samples of a class; a share of nothing is NaN.
struct ClassScore {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  Index samples = 0;
};
std::vector<ClassScore> class_scores(const ConfusionMatrix& confusion);

}  // namespace lockstep
