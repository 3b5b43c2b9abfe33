// One function per wire file; the catalog lists them.
#pragma once

#include "lockstep/distributed/exchange/wire.h"

namespace lockstep {

WireEntry fp32_entry();
WireEntry bf16_entry();
WireEntry fp16_entry();
WireEntry top_k_entry();

}  // namespace lockstep
