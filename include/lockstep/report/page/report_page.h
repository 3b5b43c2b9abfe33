// The page of `trainer report`: one HTML file that shows what runs did. It holds their numbers as JSON, of
// which its script makes charts, tables and texts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/history/viewed_run.h"
#include "lockstep/report/page/shown_predictions.h"

namespace lockstep {

inline constexpr std::size_t kMaxPageBytes = 1'000'000;
inline constexpr std::size_t kMaxChartPoints = 2000;

/// The change of a measure when a column is permuted, from importance.json.
struct ImportanceOfColumn {
  std::string name = {};
  double mean = 0;
};

struct ImportanceOfRun {
  std::string measure = {};  ///< "": it was not computed
  std::string set = {};
  double baseline = 0;
  std::vector<ImportanceOfColumn> columns = {};  ///< the most important first
};

/// A run with what only the page shows of it. What is missing in its directory is empty.
struct PageRun : ViewedRun {
  ShownPredictions predictions = {};
  ImportanceOfRun importance = {};
  /// The columns of a table, a row for each: name, use, kind, missing values, range.
  std::vector<std::vector<std::string>> columns = {};
  std::vector<std::string> classes = {};  ///< names, where the schema has them
};

/// All that the page shows, as JSON in one line without "<"; the guide on output has its fields. The runs in
/// the order given. Fewer points are in it where runs are long or many, so that the page has at most
/// kMaxPageBytes. Errors: ConfigError if the runs are too many for one page.
std::string report_json(const std::vector<PageRun>& runs);

/// Errors: as report_json() has them.
std::string report_page(const std::vector<PageRun>& runs);

}  // namespace lockstep
