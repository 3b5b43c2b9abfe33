// The section [data].
#pragma once

#include "option_list.h"

namespace lockstep {

void declare_data(OptionList& list, DataOptions& data, const KnownNames& names);

}  // namespace lockstep
