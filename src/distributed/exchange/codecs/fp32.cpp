#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {

CodecEntry fp32_entry() {
  return {.name = "fp32",
          .help = "the numbers as they are; the only one with `reduction = \"ordered\"` and its same bits",
          .make = [](const DistOptions&) { return std::unique_ptr<Codec>(); }};
}

}  // namespace lockstep
