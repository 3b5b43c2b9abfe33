// The key under which the counters of a stream are encrypted.
#pragma once

#include <array>
#include <cstdint>

#include "lockstep/base/random.h"

namespace lockstep {

std::array<std::uint32_t, 2> key_of_stream(const StreamKey& key);

}  // namespace lockstep
