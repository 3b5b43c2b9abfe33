// The page of `trainer report` is made of texts around its numbers (see scripts/cmake/report_page.cmake),
// which stand in JSON as shown_json() has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/report/page/report_page.h"

namespace lockstep {

struct PageParts {
  std::string_view before;  ///< HTML that stands before the numbers
  std::string_view after;   ///< and after them: Chart.js and the script
};

const PageParts& page_parts();

inline constexpr std::size_t kMaxNameBytes = 200;

/// A copy in which each text is an excerpt, and each number null where it is not finite, and without a point
/// where it is whole.
nlohmann::ordered_json shown_json(const nlohmann::ordered_json& json, std::size_t max_bytes = kMaxNameBytes);

// A run in plain sentences, and what its reader should look at.

/// A story of the run: model, data, quality and length. No HTML.
std::vector<std::string> tell_story(const PageRun& run);

/// Why it ended, numbers that are not finite, weights that were kept from long before the end, ranks that
/// waited, classes that are recognised badly, warnings of the log. No HTML.
std::vector<std::string> things_to_look_at(const PageRun& run);

/// The evaluation whose confusion matrix is shown: of the test set, else of the validation set; null without
/// one.
const EvaluationHistory* shown_confusion(const PageRun& run);

/// The positive one of two classes, or "".
std::string positive_class(const PageRun& run);

/// The name of a measure in a title: "Learning rate" for "lr", "F1 of 'fraud'" where `positive` is "fraud".
std::string measure_title(const std::string& measure, const std::string& positive);

}  // namespace lockstep
