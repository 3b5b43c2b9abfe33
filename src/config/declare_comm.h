// The options about ranks that do not come, or do not agree.
#pragma once

#include "lockstep/comm/options.h"
#include "option_list.h"

namespace lockstep {

void declare_comm(OptionList& list, CommOptions& comm);

}  // namespace lockstep
