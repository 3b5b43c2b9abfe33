// Scaled dot-product attention (Vaswani et al. 2017) of one sequence, in blocks of queries and keys that stay
// in the cache: no matrix of positions x positions is ever in memory (Milakov & Gimelshein 2018; Dao et al.
// 2022). All is computed in fp32 by one thread, and its bits depend on this sequence alone.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

/// A position has `heads` queries, then `kv_heads` keys, then as many values, each a vector of `size`
/// numbers; neighbouring heads share a key and a value where these are fewer (Ainslie et al. 2023).
struct AttentionShape {
  Index positions = 0;
  Index heads = 1;
  Index kv_heads = 1;
  Index size = 1;
  bool causal = false;  ///< a position sees none behind it
  Index window = 0;     ///< and only those nearer than this; 0: all
  /// Rotary positions (Su et al. 2021): the cosines of half of `size` angles of each position, then the
  /// sines. A vector is turned in pairs (i, i + size / 2), as in GPT-NeoX and Llama. Empty: none.
  std::span<const Scalar> rotation = {};

  Index group() const { return heads / kv_heads; }
  Index output_width() const { return heads * size; }
  Index input_width() const { return (heads + 2 * kv_heads) * size; }
  /// The keys that the query of a position sees, if `length` positions count.
  Range seen_by(Index query, Index length) const;
  /// The queries that see the key of a position.
  Range seeing(Index key, Index length) const;
};

/// In training a weight becomes 0 with the probability `rate`, and the others are divided by 1 - rate. The
/// seed, the head and the positions of query and key decide which do.
struct AttentionDropout {
  double rate = 0;
  std::uint64_t seed = 0;
};

/// x (positions x input_width), of which the first `length` positions count.
struct AttentionInput {
  const Scalar* x;
  Index length;
  AttentionDropout dropout = {};
};

/// y (positions x output_width), with zeros behind the positions that count. logs (heads x positions): the
/// logarithm of the sum of the exponentials of each query.
void attend(const AttentionShape& shape, const AttentionInput& input, Scalar* y, Scalar* logs);

/// The argument and the results of attend(), and the gradient of y.
struct AttentionBackward {
  AttentionInput input;
  const Scalar* y;
  const Scalar* logs;
  const Scalar* dy;
};

/// dx, all of it; zeros behind the positions that count.
void attend_backward(const AttentionShape& shape, const AttentionBackward& pass, Scalar* dx);

/// attend() for the query of the last of `count` positions. `kept` has the keys, then the values of so many
/// positions (kv_heads x size each), turned as they are seen; those of the last are taken from x and added.
void attend_next(const AttentionShape& shape, const Scalar* x, Index count, Scalar* kept, Scalar* y);

}  // namespace lockstep
