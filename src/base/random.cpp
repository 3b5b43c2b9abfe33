#include "lockstep/base/random.h"

#include <Random123/philox.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "lockstep/base/hash.h"
#include "random_key.h"

namespace lockstep {
namespace {

std::uint64_t mix(std::uint64_t x) {
  return mix_bits(x + kGoldenStep);
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

float RandomStream::uniform() {
  return static_cast<float>(bits() >> 8) * 0x1p-24f;
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
// leave after each pass through the network.
void KeyedPermutation::apply(std::span<Index> positions) const {
  constexpr std::size_t kBlock = 64;
  std::array<std::uint64_t, kBlock> left;
  std::array<std::uint64_t, kBlock> right;
  std::array<Index*, kBlock> target;
  while (!positions.empty()) {
    std::size_t count = std::min(positions.size(), kBlock);
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<std::uint64_t>(positions[i]);
      left[i] = x >> half_bits_;
      right[i] = x & half_mask_;
      target[i] = &positions[i];
    }
    positions = positions.subspan(count);
    while (count > 0) {
      for (const std::uint64_t key : round_keys_) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint64_t next = left[i] ^ (mix(right[i] ^ key) & half_mask_);
          left[i] = right[i];
          right[i] = next;
        }
      }
      std::size_t outside = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto x = static_cast<Index>(left[i] << half_bits_ | right[i]);
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

Index KeyedPermutation::inverse(Index image) const {
  auto x = static_cast<std::uint64_t>(image);
  do {
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & half_mask_;
    for (int round = kRounds - 1; round >= 0; --round) {
      const std::uint64_t key = at(round_keys_, round);
      const std::uint64_t previous = right ^ (mix(left ^ key) & half_mask_);
      right = left;
      left = previous;
    }
    x = left << half_bits_ | right;
  } while (x >= static_cast<std::uint64_t>(size_));
  return static_cast<Index>(x);
}

}  // namespace lockstep
