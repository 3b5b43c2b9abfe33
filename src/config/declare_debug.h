// The options that force rare paths.
#pragma once

#include "lockstep/train/options.h"
#include "option_list.h"

namespace lockstep {

void declare_debug(OptionList& list, DebugOptions& debug);

}  // namespace lockstep
