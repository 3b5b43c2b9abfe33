// The page of `trainer report`: one HTML file that shows what runs did. It holds their numbers as JSON, of
// which its script makes charts, tables and texts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/history/viewed_run.h"
#include "lockstep/train/evaluation/evaluation_details.h"

namespace lockstep {

inline constexpr std::size_t kMaxPageBytes = 1'000'000;
inline constexpr std::size_t kMaxChartPoints = 2000;

/// A run with what only the page shows of it: of evaluation.json, importance.json and schema.json. What is
/// missing in its directory is null or empty.
struct PageRun : ViewedRun {
  nlohmann::ordered_json predictions = nullptr;  ///< see read_shown_predictions()
  /// The measure, the set, the value with all columns as they are, and the columns: the most important first.
  nlohmann::ordered_json importance = nullptr;
  /// The columns of a table, a row for each: name, use, kind, missing values, range.
  std::vector<std::vector<std::string>> columns = {};
  std::vector<std::string> classes = {};  ///< names, where the schema has them
};

/// Reads these files. One that cannot be read is a warning of the run.
PageRun read_page_run(ViewedRun run, const RunDirectory& directory);

/// All that the page shows, as JSON in one line without "<"; the guide on output has its fields. The runs in
/// the order given. Fewer points are in it where runs are long or many, so that the page has at most
/// kMaxPageBytes. Errors: ConfigError if the runs are too many for one page.
std::string report_json(const std::vector<PageRun>& runs);

/// Errors: as report_json() has them.
std::string report_page(const std::vector<PageRun>& runs);

// The single predictions that a page shows: evaluation.json of a run directory. Written once, at the end of a
// run.

/// evaluation.json. A curve has at most 2,000 points, those of several classes less.
std::string to_json(const EvaluationDetails& details);

/// Reads such a file as the page has it: split, samples, curves, fits, columns, worst and windows, with all
/// points and records. Lists that belong together are equally long, and each picture has the bytes of its
/// size. Errors: DataError for a text that is no such file.
nlohmann::ordered_json read_shown_predictions(const std::string& json);

}  // namespace lockstep
