// The trials of a sweep side by side, the best first: for people and for programs.
#pragma once

#include <span>
#include <string>

#include "sweep_state.h"
#include "trial_row.h"

namespace lockstep {

/// The table, what failed and why, the best trial, and how to go on with it.
std::string sweep_table(std::span<const TrialRow> rows, const Measure& measure,
                        const SweepDirectory& directory);
/// sweep.json.
nlohmann::ordered_json sweep_json(std::span<const TrialRow> rows, const Measure& measure,
                                  const SweepDirectory& directory);

/// The folds of a cross-validation, their mean, and their standard deviation (that of a sample: divided by K
/// - 1).
std::string folds_table(std::span<const TrialRow> folds, const Measure& measure,
                        const SweepDirectory& directory);
/// sweep.json of a cross-validation.
nlohmann::ordered_json folds_json(std::span<const TrialRow> rows, const Measure& measure,
                                  const SweepDirectory& directory);

}  // namespace lockstep
