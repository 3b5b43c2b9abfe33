// Philox 4x32-10 (Salmon et al. 2011) on several counters side by side, which compilers turn into vectors.
#include "lockstep/base/random_bits.h"

#include <algorithm>
#include <array>

#include "random_key.h"

namespace lockstep {
namespace {

constexpr std::size_t kLanes = 32;  // fewer are unrolled, and then not vectorised
constexpr std::size_t kWords = 4;   // numbers of a counter
using Lanes = std::array<std::uint32_t, kLanes>;

// A round of all counters; `b` and `d` are the second and fourth words, which it replaces by low halves.
void take_round(Lanes& a, Lanes& b, Lanes& c, Lanes& d, std::uint32_t key0, std::uint32_t key1) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * a[i];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * c[i];
    a[i] = static_cast<std::uint32_t>(second >> 32) ^ b[i] ^ key0;
    c[i] = static_cast<std::uint32_t>(first >> 32) ^ d[i] ^ key1;
    b[i] = static_cast<std::uint32_t>(second);
    d[i] = static_cast<std::uint32_t>(first);
  }
}

void encrypt(std::array<Lanes, kWords>& words, std::array<std::uint32_t, 2> key) {
  constexpr int kRounds = 10;
  auto [a, b, c, d] = words;
  for (int round = 0; round < kRounds; ++round) {
    take_round(a, b, c, d, key[0], key[1]);
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  words = {a, b, c, d};
}

}  // namespace

void fill_bits(const StreamKey& key, std::span<std::uint32_t> bits) {
  const std::array<std::uint32_t, 2> name = key_of_stream(key);
  std::uint64_t counter = 0;
  for (std::size_t begin = 0; begin < bits.size(); begin += kLanes * kWords, counter += kLanes) {
    std::array<Lanes, kWords> words{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      words[0][i] = static_cast<std::uint32_t>(counter + i);
      words[1][i] = static_cast<std::uint32_t>((counter + i) >> 32);
      words[2][i] = static_cast<std::uint32_t>(key.b);
      words[3][i] = static_cast<std::uint32_t>(key.b >> 32);
    }
    encrypt(words, name);
    const std::size_t count = std::min(bits.size() - begin, kLanes * kWords);
    std::array<std::uint32_t, kLanes * kWords> in_order{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      for (std::size_t j = 0; j < kWords; ++j) in_order[kWords * i + j] = words[j][i];
    }
    std::copy_n(in_order.begin(), count, bits.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}  // namespace lockstep
