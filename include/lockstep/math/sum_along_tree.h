// Sums along the fixed tree (fixed_tree.h) of leaves that are made one after the other, so that only few of
// them are held at a time.
#pragma once

#include <bit>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/fixed_tree.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// Scalars of the spare memory that sum_along_tree() takes for sums of `size` scalars.
inline Index spare_for_tree(Index leaves, Index size) {
  return leaves < 2 ? 0 : size * static_cast<Index>(std::bit_width(static_cast<std::uint64_t>(leaves - 1)));
}

/// Writes the sum of the leaves of a subtree. `leaf(i, to)` writes leaf i, and gives whether it is there; the
/// leaves are asked for in order. Gives whether any is there; otherwise nothing is written. `spare`: at least
/// spare_for_tree() scalars.
template <class Leaf>
bool sum_along_tree(Range subtree, std::span<Scalar> sum, std::span<Scalar> spare, const Leaf& leaf) {
  if (subtree.size() == 1) return leaf(subtree.begin, sum);
  const Index middle = tree_split(subtree);
  const Range right{middle, subtree.end};
  if (!sum_along_tree({subtree.begin, middle}, sum, spare, leaf)) {
    return sum_along_tree(right, sum, spare, leaf);
  }
  const std::span<Scalar> term = spare.first(sum.size());
  if (sum_along_tree(right, term, spare.subspan(sum.size()), leaf)) add(sum, term);
  return true;
}

}  // namespace lockstep
