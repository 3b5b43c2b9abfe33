// One function per codec file; the catalog lists them.
#pragma once

#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {

CodecEntry fp32_entry();
CodecEntry bf16_entry();
CodecEntry fp16_entry();
CodecEntry top_k_entry();

}  // namespace lockstep
