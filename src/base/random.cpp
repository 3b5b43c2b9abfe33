#include "lockstep/base/random.h"

#include <Random123/philox.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "lockstep/base/hash.h"

namespace lockstep {

// The key under which the counters of a stream are encrypted.

std::array<std::uint32_t, 2> key_of_stream(const StreamKey& key);

namespace {

std::uint64_t mix(std::uint64_t x) {
  return mix_bits(x + kGoldenStep);
}

// Philox 4x32-10 (Salmon et al. 2011) on several counters side by side, which compilers turn into vectors.

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

std::array<std::uint32_t, 2> key_of_stream(const StreamKey& key) {
  const std::uint64_t name = mix(mix(mix(key.seed) ^ static_cast<std::uint64_t>(key.purpose)) ^ key.a);
  return {static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name >> 32)};
}

RandomStream::RandomStream(const StreamKey& key) {
  key_ = key_of_stream(key);
  counter_ = {0, 0, static_cast<std::uint32_t>(key.b), static_cast<std::uint32_t>(key.b >> 32)};
}

void RandomStream::refill() {
  r123::Philox4x32 philox;
  const r123::Philox4x32::ctr_type counter = {{counter_[0], counter_[1], counter_[2], counter_[3]}};
  const r123::Philox4x32::key_type key = {{key_[0], key_[1]}};
  const auto block = philox(counter, key);
  for (std::size_t i = 0; i < 4; ++i) block_[i] = block[i];
  if (++counter_[0] == 0) ++counter_[1];
  used_ = 0;
}

std::uint32_t RandomStream::bits() {
  if (used_ == 4) refill();
  return at(block_, used_++);
}

std::uint64_t RandomStream::bits64() {
  const std::uint64_t high = bits();
  return high << 32 | bits();
}

Index RandomStream::below(Index end) {
  // The high half of a product spreads 32 random bits over the numbers (Lemire 2019).
  return static_cast<Index>(std::uint64_t{bits()} * static_cast<std::uint64_t>(end) >> 32);
}

float RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // In double, so that the tail reaches as far as 32 bits allow; the half keeps the logarithm finite.
  const double u = (static_cast<double>(bits()) + 0.5) * 0x1p-32;
  const double angle = 2 * std::numbers::pi * static_cast<double>(bits()) * 0x1p-32;
  const double radius = std::sqrt(-2 * std::log(u));
  spare_ = static_cast<float>(radius * std::sin(angle));
  has_spare_ = true;
  return static_cast<float>(radius * std::cos(angle));
}

KeyedPermutation::KeyedPermutation(Index size, const StreamKey& key) : size_(size) {
  const auto bits =
      static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(size > 1 ? size - 1 : 1)));
  half_bits_ = (bits + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  RandomStream stream(key);
  for (std::uint64_t& round_key : round_keys_) round_key = stream.bits64();
}

Index KeyedPermutation::operator()(Index i) const {
  apply({&i, 1});
  return i;
}

// All positions of a block take a round together, which compilers turn into vectors; those that are inside
// leave after each pass through the network. The inverse is the same network with its halves exchanged and
// its keys in turn from the last.
template <bool kInverse>
void KeyedPermutation::walk(std::span<Index> positions) const {
  constexpr std::size_t kBlock = 64;
  std::array<std::uint64_t, kBlock> left;
  std::array<std::uint64_t, kBlock> right;
  std::array<Index*, kBlock> target;
  while (!positions.empty()) {
    std::size_t count = std::min(positions.size(), kBlock);
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<std::uint64_t>(positions[i]);
      (kInverse ? right : left)[i] = x >> half_bits_;
      (kInverse ? left : right)[i] = x & half_mask_;
      target[i] = &positions[i];
    }
    positions = positions.subspan(count);
    while (count > 0) {
      for (int round = 0; round < kRounds; ++round) {
        const std::uint64_t key = at(round_keys_, kInverse ? kRounds - 1 - round : round);
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint64_t next = left[i] ^ (mix(right[i] ^ key) & half_mask_);
          left[i] = right[i];
          right[i] = next;
        }
      }
      std::size_t outside = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t high = kInverse ? right[i] : left[i];
        const auto x = static_cast<Index>(high << half_bits_ | (kInverse ? left[i] : right[i]));
        *target[i] = x;
        left[outside] = left[i];
        right[outside] = right[i];
        target[outside] = target[i];
        outside += x >= size_ ? 1 : 0;
      }
      count = outside;
    }
  }
}

void KeyedPermutation::apply(std::span<Index> positions) const {
  walk<false>(positions);
}

void KeyedPermutation::invert(std::span<Index> images) const {
  walk<true>(images);
}

Index KeyedPermutation::inverse(Index image) const {
  invert({&image, 1});
  return image;
}

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
