// The fixed tree, for all numbers of leaves to 64 and of ranks: whoever adds, the bits are its definition's.
#include "lockstep/math/fixed_tree.h"

#include "support/seed.h"

namespace lockstep::fixed_tree_test {

constexpr Index kMaxLeaves = 64;

/// A leaf without a value is missing.
using Leaves = std::vector<std::optional<float>>;

// The definition in fixed_tree.h, written down once more without its code.
std::optional<float> sum_by_definition(const Leaves& leaves, Index begin, Index end) {
  if (end - begin == 1) return at(leaves, begin);
  Index power = 1;
  while (power * 2 < end - begin) power *= 2;
  const std::optional<float> left = sum_by_definition(leaves, begin, begin + power);
  const std::optional<float> right = sum_by_definition(leaves, begin + power, end);
  if (!left) return right;
  if (!right) return left;
  return *left + *right;
}

/// Sums of subtrees, in the order of their leaves.
struct Pieces {
  std::vector<Range> subtrees;
  std::vector<float> values;
};

Pieces merge(Pieces pieces, std::span<const Range> wanted) {
  const MergePlan plan = plan_merges(pieces.subtrees, wanted);
  for (const Merge& merge : plan.merges) at(pieces.values, merge.target) += at(pieces.values, merge.source);
  Pieces merged{plan.subtrees, {}};
  for (const Index survivor : plan.survivors) merged.values.push_back(at(pieces.values, survivor));
  return merged;
}

Pieces present_leaves(const Leaves& leaves, Range range) {
  Pieces pieces;
  for (Index leaf = range.begin; leaf < range.end; ++leaf) {
    if (!at(leaves, leaf)) continue;
    pieces.subtrees.push_back({leaf, leaf + 1});
    pieces.values.push_back(*at(leaves, leaf));
  }
  return pieces;
}

// What a run on `ranks` ranks computes: each rank its complete subtrees, then an owner the rest.
std::optional<float> sum_over_ranks(const Leaves& leaves, Index ranks) {
  const auto count = std::ssize(leaves);
  Pieces sent;
  for (Index rank = 0; rank < ranks; ++rank) {
    const Range local = split_evenly(count, ranks, rank);
    const Pieces merged = merge(present_leaves(leaves, local), complete_subtrees(count, local));
    sent.subtrees.insert(sent.subtrees.end(), merged.subtrees.begin(), merged.subtrees.end());
    sent.values.insert(sent.values.end(), merged.values.begin(), merged.values.end());
  }
  const Pieces total = merge(sent, std::vector<Range>{{0, count}});
  if (total.values.empty()) return std::nullopt;
  EXPECT_EQ(total.values.size(), 1U);
  return total.values[0];
}

// Values whose sum depends on the order of the additions.
Leaves random_leaves(std::mt19937_64& rng, Index count, double missing) {
  std::normal_distribution<float> normal;
  std::bernoulli_distribution is_missing(missing);
  Leaves leaves(static_cast<std::size_t>(count));
  for (std::optional<float>& leaf : leaves) {
    if (!is_missing(rng)) leaf = normal(rng);
  }
  return leaves;
}

// All subtrees of the tree over [begin, end).
void collect_nodes(Range subtree, std::vector<Range>& subtrees) {
  subtrees.push_back(subtree);
  if (subtree.size() == 1) return;
  const Index middle = tree_split(subtree);
  collect_nodes({subtree.begin, middle}, subtrees);
  collect_nodes({middle, subtree.end}, subtrees);
}

TEST(FixedTree, SplitsAtTheLargestPowerOfTwoBelowTheLength) {
  EXPECT_EQ(tree_split({0, 2}), 1);
  EXPECT_EQ(tree_split({0, 3}), 2);
  EXPECT_EQ(tree_split({0, 8}), 4);
  EXPECT_EQ(tree_split({0, 9}), 8);
  EXPECT_EQ(tree_split({8, 15}), 12);
}

TEST(FixedTree, CompleteNodesAreNodesThatCoverARankExactly) {
  for (Index count = 1; count <= kMaxLeaves; ++count) {
    std::vector<Range> tree;
    collect_nodes({0, count}, tree);
    for (Index ranks = 1; ranks <= count; ++ranks)
      for (Index rank = 0; rank < ranks; ++rank) {
        const Range local = split_evenly(count, ranks, rank);
        Index end = local.begin;
        for (const Range& subtree : complete_subtrees(count, local)) {
          ASSERT_EQ(subtree.begin, end) << count << " leaves, rank " << rank << " of " << ranks;
          ASSERT_NE(std::ranges::find(tree, subtree), tree.end()) << "not a subtree of the tree";
          end = subtree.end;
        }
        ASSERT_EQ(end, local.end) << count << " leaves, rank " << rank << " of " << ranks;
      }
  }
}

TEST(FixedTree, CompleteNodesAreAsFewAsPossible) {
  for (Index count = 1; count <= 24; ++count) {
    EXPECT_EQ(complete_subtrees(count, {0, count}), (std::vector<Range>{{0, count}}));
    std::vector<Range> tree;
    collect_nodes({0, count}, tree);
    for (Index begin = 0; begin < count; ++begin)
      for (Index end = begin + 1; end <= count; ++end) {
        // The largest subtrees inside the range are disjoint, so nothing smaller can do.
        Index largest = 0;
        for (const Range& subtree : tree) {
          if (!Range{begin, end}.contains(subtree)) continue;
          const auto is_larger = [&](Range other) {
            return other != subtree && other.contains(subtree) && Range{begin, end}.contains(other);
          };
          if (std::ranges::none_of(tree, is_larger)) ++largest;
        }
        ASSERT_EQ(static_cast<Index>(complete_subtrees(count, {begin, end}).size()), largest)
            << count << " leaves, [" << begin << ", " << end << ")";
      }
  }
}

TEST(FixedTree, TheSumHasTheSameBitsForEveryNumberOfRanks) {
  std::mt19937_64 rng(test::seed());
  for (Index count = 1; count <= kMaxLeaves; ++count) {
    const Leaves leaves = random_leaves(rng, count, 0);
    const std::optional<float> expected = sum_by_definition(leaves, 0, count);
    for (Index ranks = 1; ranks <= count; ++ranks)
      ASSERT_EQ(sum_over_ranks(leaves, ranks), expected) << count << " leaves on " << ranks << " ranks";
  }
}

TEST(FixedTree, MissingLeavesAreSkipped) {
  std::mt19937_64 rng(test::seed());
  for (Index count = 1; count <= kMaxLeaves; ++count)
    for (const double missing : {0.1, 0.5, 0.9, 1.0}) {
      const Leaves leaves = random_leaves(rng, count, missing);
      const std::optional<float> expected = sum_by_definition(leaves, 0, count);
      for (Index ranks = 1; ranks <= count; ++ranks)
        ASSERT_EQ(sum_over_ranks(leaves, ranks), expected)
            << count << " leaves on " << ranks << " ranks, a share of " << missing << " missing";
    }
}

TEST(FixedTree, AMissingLeafIsNotAZero) {
  // Adding +0 would turn -0 into +0.
  const Leaves leaves{-0.0F, std::nullopt, std::nullopt};
  const std::optional<float> sum = sum_over_ranks(leaves, 2);
  ASSERT_TRUE(sum.has_value());
  EXPECT_TRUE(std::signbit(*sum));
}

TEST(FixedTree, TheRandomSumsDoDependOnOrder) {
  std::mt19937_64 rng(test::seed());
  int different = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const Leaves leaves = random_leaves(rng, kMaxLeaves, 0);
    float in_order = 0;
    for (const std::optional<float>& leaf : leaves) in_order += *leaf;
    if (in_order != *sum_by_definition(leaves, 0, kMaxLeaves)) ++different;
  }
  EXPECT_GT(different, 50);
}

TEST(FixedTree, TreeSumFollowsTheTree) {
  EXPECT_EQ(tree_sum({}), 0);
  EXPECT_EQ(tree_sum(std::vector<double>{3}), 3);
  // Of 1e16 and three ones, only ones that meet each other first survive the rounding.
  EXPECT_EQ(tree_sum(std::vector<double>{1e16, 1, 1, 1}), 1e16 + 2);
  EXPECT_EQ(tree_sum(std::vector<double>{1, 1, 1, 1e16}), 1e16 + 2);
}

}  // namespace lockstep::fixed_tree_test
