// A run as it is shown: what its directory says of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/report/page/shown_predictions.h"

namespace lockstep {

struct ConfigLine {
  std::string key;
  std::string value;  ///< "": not given
  std::string by_default;
};

/// The weights of model.safetensors.
struct KeptWeights {
  bool best = false;  ///< else the last ones
  double step = 0;
  std::string measure = {};  ///< the measure that chose the best ones
  double value = 0;
};

/// Shares of the time of all steps.
struct TimeOfRun {
  double data = 0;
  double compute = 0;
  double communication = 0;
  double waiting = 0;
  double idle = 0;  ///< for other stages; 0 where the model is not divided
};

/// How predictions of about one probability came true; see ReliabilityBin.
struct ReliabilityPoint {
  double predicted = 0;
  double observed = 0;
  double count = 0;
};

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

/// A run in the words and numbers that its directory has; what is missing there is empty.
struct RunDescription {
  std::string name = {};
  std::string state = {};   ///< "done", "running", "stopped", "failed", "unfinished", "damaged"
  std::string reason = {};  ///< why it is not done
  std::vector<ConfigLine> config = {};
  MetricsHistory metrics = {};
  double steps = 0;
  double samples = 0;
  double epochs = 0;
  double seconds = 0;  ///< training time
  std::optional<KeptWeights> kept = {};
  std::optional<TimeOfRun> time = {};
  ShownPredictions predictions = {};
  std::string reliability_split = {};  ///< set whose reliability is shown
  std::vector<ReliabilityPoint> reliability = {};
  ImportanceOfRun importance = {};
  std::string algorithm = {};
  std::string plan = {};                                          ///< text of plan.txt
  std::vector<std::pair<std::string, std::string>> planned = {};  ///< its rows: "steps", "846"
  std::string ranks = {};                                         ///< text of ranks.txt
  /// The columns of a table, a row for each: name, use, kind, missing values, range.
  std::vector<std::vector<std::string>> columns = {};
  std::vector<std::string> classes = {};   ///< names, where the schema has them
  std::string launch = {};                 ///< first line of the log
  std::vector<std::string> warnings = {};  ///< warnings in the log

  std::string value(const std::string& key) const;
  std::string planned_value(const std::string& row) const;
  /// The number in a row of the plan, "8,000"; 0 without one.
  double planned_number(const std::string& row) const;
  /// "fashion" of "runs/fashion": the name in charts.
  std::string short_name() const;
};

/// Whether a key says where a run is kept or how it is shown, and nothing about what comes of it.
bool names_no_result(std::string_view key);

}  // namespace lockstep
