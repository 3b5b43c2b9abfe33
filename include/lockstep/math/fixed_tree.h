// The one order in which numbers of replicas are added.
//
// A *subtree* of the tree over n leaves is a range of leaves. A subtree of more than one leaf is split at the
// largest power of two below its length; its sum is the sum of its left half plus the sum of its right half.
// Leaves can be *missing* (a replica without data in this step); a subtree whose half has no leaf at all
// takes the other half as it is. So the sum depends on n and on which leaves are there, and not on who adds:
// a rank adds the complete subtrees inside its range of leaves, and the owner of a slice adds the rest.
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// The split of a subtree of more than one leaf: the first leaf of its right half.
Index tree_split(Range subtree);

/// The fewest subtrees of the tree over [0, leaves) that together are exactly `local`, in order.
std::vector<Range> complete_subtrees(Index leaves, Range local);

/// One addition: the piece `source` is added to the piece `target`, which then stands for `subtree`.
struct Merge {
  Index target = 0;
  Index source = 0;
};

/// How a list of pieces becomes fewer pieces.
struct MergePlan {
  std::vector<Merge> merges;  ///< additions in the order in which they run
  std::vector<Index>
      survivors;  ///< the pieces that end up as sums: one for each wanted subtree that has a piece in it
  std::vector<Range> subtrees;  ///< the wanted subtree of each survivor
};

/// The additions that turn `pieces` (sums of distinct subtrees of the tree, in order of their leaves; a leaf
/// in none of them is missing) into one sum for each of `wanted` (subtrees that no piece straddles). Wanted
/// subtrees without any piece have no survivor.
MergePlan plan_merges(std::span<const Range> pieces, std::span<const Range> wanted);

/// Runs the additions on spans of equal length, one per piece, block by block so that sums stay in cache.
void apply_merges(std::span<const Merge> merges, std::span<const std::span<Scalar>> pieces);

/// The sum of all values over the tree of values.size() leaves; 0 if there are none.
double tree_sum(std::span<const double> values);

/// The sums of the first columns of the rows in a subtree, along the tree. Row i begins at rows[i * stride].
void tree_sum_rows(std::span<const double> rows, Index stride, Range subtree, std::span<double> sums);

// Sums along the fixed tree (fixed_tree.h) of leaves that are made one after the other, so that only few of
// them are held at a time.

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
