// Many numbers of a stream at a time, which takes a fraction of the time that one after the other does.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/random.h"

namespace lockstep {

/// The first numbers of the stream, as RandomStream::bits gives them one after the other.
void fill_bits(const StreamKey& key, std::span<std::uint32_t> bits);

}  // namespace lockstep
