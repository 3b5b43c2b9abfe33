// An evaluation in tables: how each class is recognised, and whether what is predicted with a probability
// comes true as often.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/evaluation/importance.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

/// Classes of which tables are shown; files have up to 100.
inline constexpr Index kMaxClassesShown = 30;

/// Precision, recall, F1 and samples of each class (of several outputs of yes or no: of the yes of each),
/// then the reliability; "" for what is neither. Each line ends with a line feed.
std::string evaluation_tables(const EvalMetrics& metrics);

/// The evaluation as metrics.jsonl has it, with the tables in it, as "per_class" and "reliability", and
/// "forecast".
nlohmann::ordered_json json_with_tables(const EvalMetrics& metrics);

/// A list of the forecasts: of the model, where it is known, and those that need none.
nlohmann::ordered_json json_of_errors(const ForecastErrors& errors);

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

// The findings of importance for a terminal, as CSV and as JSON.

struct ImportanceResult {
  std::string model;
  std::string set;      ///< "validation" or "test"
  std::string measure;  ///< "loss", "accuracy" or a metric
  Importance importance;
};

std::string to_text(const ImportanceResult& result);
std::string to_csv(const ImportanceResult& result);
std::string to_json(const ImportanceResult& result);

struct DependenceResult {
  std::string model;
  std::string set;
  Index samples = 0;
  std::string column;
  std::vector<std::string>
      outputs;  ///< what is predicted: "prediction", or "probability of yes" and the like
  std::vector<ColumnValue> grid;
  std::vector<std::vector<double>> means;  ///< a row for each value of the grid, a column for each output
};

std::string to_text(const DependenceResult& result);
std::string to_csv(const DependenceResult& result);
std::string to_json(const DependenceResult& result);

}  // namespace lockstep
