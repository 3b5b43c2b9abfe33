// The settings of what rank 0 writes while a run goes on, made from the config.
#pragma once

#include <set>
#include <string>

#include "experiment.h"
#include "lockstep/report/run_output.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// `given`: the keys that the user has set, which TensorBoard shows.
RunOutputSettings output_settings(const Experiment& experiment, const RunPlan& plan,
                                  const std::set<std::string>& given);

}  // namespace lockstep
