// The lines with which a training run begins: its ranks, its plan, what each of them holds.
#pragma once

#include <string>

#include "app/setup/experiment.h"
#include "app/setup/rank_placement.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/records.h"

namespace lockstep {

/// Logs the ranks, their placement and the plan.
void announce(Communicator& comm, const Config& config, const RunPlan& plan, const RankPlacement& placement);

/// *Collective.* One line for each rank: what it holds. Only a few of them are on the console, unless the
/// full plan is.
void report_loaded(Communicator& comm, const RunPlan& plan, const Records& train, PlanStyle style);

/// How gradients are exchanged, where that was chosen.
void report_algorithm(const std::string& algorithm, const DistOptions& distribute);

}  // namespace lockstep
