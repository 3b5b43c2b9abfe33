// Counter-based random numbers (Philox 4x32-10; Salmon et al. 2011, "Parallel random numbers: as easy as 1,
// 2, 3"). A stream is named by what it is for, never by a rank or a thread, so the same config draws the same
// numbers anywhere.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

/// The use that a stream is for: two purposes never share numbers. Values are part of the same-bits promise:
/// append only.
enum class Purpose : std::uint32_t {
  kInitialise = 1,
  kShard = 2,
  kShuffle = 3,
  kSynthetic = 4,
  kAugment = 5,
  kDropout = 6,
  kUnits = 7,
  kPieces = 8,
  kWindow = 9,
  kSplit = 10,
  kBuckets = 11,
  kStart = 12,
  kTrial = 31,
  kFold = 32,
  kImportance = 33,
  kToken = 34,
};

/// Names one stream of random numbers.
struct StreamKey {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::kInitialise;
  std::uint64_t a = 0;  ///< the first thing it is keyed by: epoch, tensor, sample, pass
  std::uint64_t b = 0;  ///< the second: replica, column, sample
};

/// The numbers of one stream, in order.
class RandomStream {
 public:
  explicit RandomStream(const StreamKey& key);

  std::uint32_t bits();
  std::uint64_t bits64();
  /// A whole number in [0, end), each as likely but for one part in 2^32 / end. Requires 0 < end < 2^32.
  Index below(Index end);
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }
  /// Standard normal (Box-Muller).
  float normal();

 private:
  void refill();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  float spare_ = 0;
  bool has_spare_ = false;
};

/// A pseudorandom permutation of [0, size) that needs no memory: a Feistel network on the smallest even
/// number of bits that holds `size`, walked until it lands inside (Black & Rogaway 2002). Each call costs a
/// few rounds.
class KeyedPermutation {
 public:
  KeyedPermutation(Index size, const StreamKey& key);

  Index size() const { return size_; }
  /// The image of position `i`. Requires 0 <= i < size.
  Index operator()(Index i) const;
  /// Replaces each position by its image; many at a time take a tenth of the time each.
  void apply(std::span<Index> positions) const;
  /// The position that goes to `image`: inverse(p(i)) == i.
  Index inverse(Index image) const;
  /// Replaces each image by its position; many at a time take a tenth of the time each.
  void invert(std::span<Index> images) const;

 private:
  static constexpr int kRounds = 6;
  template <bool kInverse>
  void walk(std::span<Index> positions) const;

  Index size_;
  unsigned half_bits_ = 1;
  std::uint64_t half_mask_ = 1;
  std::array<std::uint64_t, kRounds> round_keys_{};
};

// Many numbers of a stream at a time, which takes a fraction of the time that one after the other does.

/// The first numbers of the stream, as RandomStream::bits gives them one after the other.
void fill_bits(const StreamKey& key, std::span<std::uint32_t> bits);

}  // namespace lockstep
