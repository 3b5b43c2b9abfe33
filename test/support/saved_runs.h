// Runs of a small experiment that save themselves often and keep little, and what of them must be the same
// bytes whatever befell them.
#pragma once

#include "lockstep/base/types.h"
#include "support/small_experiment.h"

namespace lockstep::test {

/// The flags of a run of nine steps with checkpoints after the 3rd, 6th and 9th, two evaluations, and a best
/// one. `flags` come after those. `validated`: whether the validation set is the test set of the experiment,
/// not one that its config names.
std::string saving_arguments(const SmallExperiment& experiment, const std::string& run,
                             const std::string& flags = "", bool validated = true);

/// "RUN/checkpoints/step-000000006".
std::string checkpoint_of(const std::string& run, Index step);
/// Steps of the finished checkpoints of a run, in order; and the last of them, -1 if there is none.
std::vector<Index> finished_checkpoints(const std::string& run);
Index newest_checkpoint(const std::string& run);
/// Files and directories that bear a name for unfinished ones.
std::vector<std::string> unfinished_names(const std::string& run);

std::string model_of(const std::string& run);
/// metrics.jsonl without what time decides.
std::string metrics_of(const std::string& run);
/// Both are those of another run.
void expect_same_run(const std::string& found, const std::string& expected);

}  // namespace lockstep::test
