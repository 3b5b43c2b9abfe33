#include "lockstep/math/fixed_tree.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

void collect_complete(Range subtree, Range local, std::vector<Range>& out) {
  if (intersect(subtree, local).empty()) return;
  if (local.contains(subtree)) {
    out.push_back(subtree);
    return;
  }
  const Index middle = tree_split(subtree);
  collect_complete({subtree.begin, middle}, local, out);
  collect_complete({middle, subtree.end}, local, out);
}

// Sums one subtree out of the pieces inside it, appending the additions; the piece that holds the sum, if
// there is any.
class SubtreeMerger {
 public:
  SubtreeMerger(std::span<const Range> pieces, std::vector<Merge>& merges)
      : pieces_(pieces), merges_(merges) {}

  std::optional<Index> sum(Range subtree) {
    while (next_ < pieces_.size() && pieces_[next_].end <= subtree.begin) ++next_;
    if (next_ == pieces_.size() || pieces_[next_].begin >= subtree.end) return std::nullopt;
    if (pieces_[next_] == subtree) return static_cast<Index>(next_++);
    assert(subtree.size() > 1 && "a piece is not a subtree of the tree");
    const Index middle = tree_split(subtree);
    const std::optional<Index> left = sum({subtree.begin, middle});
    const std::optional<Index> right = sum({middle, subtree.end});
    if (!left) return right;
    if (right) merges_.push_back({.target = *left, .source = *right});
    return left;
  }

 private:
  std::span<const Range> pieces_;
  std::vector<Merge>& merges_;
  std::size_t next_ = 0;
};

// Leaf i has values[i * stride].
double sum_subtree(const double* values, Index stride, Range subtree) {
  if (subtree.size() == 1) return values[subtree.begin * stride];
  const Index middle = tree_split(subtree);
  return sum_subtree(values, stride, {subtree.begin, middle}) +
         sum_subtree(values, stride, {middle, subtree.end});
}

}  // namespace

Index tree_split(Range subtree) {
  const auto below = static_cast<std::uint64_t>(subtree.size() - 1);
  return subtree.begin + static_cast<Index>(std::bit_floor(below));
}

std::vector<Range> complete_subtrees(Index leaves, Range local) {
  std::vector<Range> subtrees;
  if (leaves > 0) collect_complete({0, leaves}, local, subtrees);
  return subtrees;
}

MergePlan plan_merges(std::span<const Range> pieces, std::span<const Range> wanted) {
  MergePlan plan;
  SubtreeMerger merger(pieces, plan.merges);
  for (const Range subtree : wanted) {
    if (const std::optional<Index> piece = merger.sum(subtree)) {
      plan.survivors.push_back(*piece);
      plan.subtrees.push_back(subtree);
    }
  }
  return plan;
}

void apply_merges(std::span<const Merge> merges, std::span<const std::span<Scalar>> pieces) {
  constexpr Index kBlock = 4096;
  if (merges.empty()) return;
  const auto length = std::ssize(pieces.front());
  for (Index begin = 0; begin < length; begin += kBlock) {
    const Range block{begin, std::min(begin + kBlock, length)};
    for (const Merge& merge : merges) {
      add(part(at(pieces, merge.target), block),
          part(std::span<const Scalar>(at(pieces, merge.source)), block));
    }
  }
}

double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  return sum_subtree(values.data(), 1, {0, std::ssize(values)});
}

void tree_sum_rows(std::span<const double> rows, Index stride, Range subtree, std::span<double> sums) {
  for (std::size_t column = 0; column < sums.size(); ++column) {
    sums[column] = sum_subtree(rows.data() + column, stride, subtree);
  }
}

}  // namespace lockstep
