// An evaluation in tables: how each class is recognised, and whether what is predicted with a probability
// comes true as often.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

/// Classes of which tables are shown; files have up to 100.
inline constexpr Index kMaxClassesShown = 30;

/// Precision, recall, F1 and samples of each class (of several outputs of yes or no: of the yes of each),
/// then the reliability; "" for what is neither. Each line ends with a line feed.
std::string evaluation_tables(const EvalMetrics& metrics);

/// The evaluation as metrics.jsonl has it, with the tables in it, as "per_class" and "reliability".
nlohmann::ordered_json json_with_tables(const EvalMetrics& metrics);

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
