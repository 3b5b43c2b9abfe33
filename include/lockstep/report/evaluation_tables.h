// An evaluation in tables: how each class is recognised, and whether what is predicted with a probability
// comes true as often.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

/// Classes of which tables are shown; files have up to 100.
inline constexpr Index kMaxClassesShown = 30;

/// Precision, recall, F1 and samples of each class (of several outputs of yes or no: of the yes of each),
/// then the reliability; "" for what is neither. Each line ends with a line feed.
std::string evaluation_tables(const EvalMetrics& metrics);

/// The evaluation as metrics.jsonl has it, with the tables in it, as "per_class" and "reliability".
nlohmann::ordered_json json_with_tables(const EvalMetrics& metrics);
}  // namespace lockstep
