#include "lockstep/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {

std::uint64_t hash_bytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash_text(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace lockstep
