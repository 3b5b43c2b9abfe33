// The options of the run itself: where it lives, how it is watched, saved, and gone on with.
#pragma once

#include "option_list.h"

namespace lockstep {

void declare_run(OptionList& list, RunOptions& run);
void declare_checkpoint(OptionList& list, CheckpointOptions& checkpoint);

}  // namespace lockstep
