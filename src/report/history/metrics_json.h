// The measurements of a run as JSON values: for metrics.jsonl and summary.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/train/loop/observer.h"

namespace lockstep {

/// Adds step, epoch and samples_seen.
void add_progress(nlohmann::ordered_json& json, const Progress& progress);
nlohmann::ordered_json shares_json(const TimeShares& shares);
nlohmann::ordered_json workers_json(const WorkersReport& report);
nlohmann::ordered_json ranks_json(const RankTimes& times);
nlohmann::ordered_json evaluation_json(const EvalMetrics& metrics);

}  // namespace lockstep
