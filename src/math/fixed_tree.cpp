#include "lockstep/math/fixed_tree.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <optional>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

void collect_complete(Range node, Range local, std::vector<Range>& out) {
  if (intersect(node, local).empty()) return;
  if (local.contains(node)) {
    out.push_back(node);
    return;
  }
  const Index middle = tree_split(node);
  collect_complete({node.begin, middle}, local, out);
  collect_complete({middle, node.end}, local, out);
}

// Sums one node out of the pieces inside it, appending the additions; the piece that holds the sum, if there
// is any.
class NodeMerger {
 public:
  NodeMerger(std::span<const Range> pieces, std::vector<Merge>& merges) : pieces_(pieces), merges_(merges) {}

  std::optional<Index> sum(Range node) {
    while (next_ < pieces_.size() && pieces_[next_].end <= node.begin) ++next_;
    if (next_ == pieces_.size() || pieces_[next_].begin >= node.end) return std::nullopt;
    if (pieces_[next_] == node) return static_cast<Index>(next_++);
    assert(node.size() > 1 && "a piece is not a node of the tree");
    const Index middle = tree_split(node);
    const std::optional<Index> left = sum({node.begin, middle});
    const std::optional<Index> right = sum({middle, node.end});
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
double sum_node(const double* values, Index stride, Range node) {
  if (node.size() == 1) return values[node.begin * stride];
  const Index middle = tree_split(node);
  return sum_node(values, stride, {node.begin, middle}) + sum_node(values, stride, {middle, node.end});
}

}  // namespace

Index tree_split(Range node) {
  const auto below = static_cast<std::uint64_t>(node.size() - 1);
  return node.begin + static_cast<Index>(std::bit_floor(below));
}

std::vector<Range> complete_nodes(Index leaves, Range local) {
  std::vector<Range> nodes;
  if (leaves > 0) collect_complete({0, leaves}, local, nodes);
  return nodes;
}

MergePlan plan_merges(std::span<const Range> pieces, std::span<const Range> wanted) {
  MergePlan plan;
  NodeMerger merger(pieces, plan.merges);
  for (const Range node : wanted) {
    if (const std::optional<Index> piece = merger.sum(node)) {
      plan.survivors.push_back(*piece);
      plan.nodes.push_back(node);
    }
  }
  return plan;
}

void apply_merges(std::span<const Merge> merges, std::span<const std::span<Scalar>> pieces) {
  constexpr Index kBlock = 4096;
  if (merges.empty()) return;
  const auto length = static_cast<Index>(pieces.front().size());
  for (Index begin = 0; begin < length; begin += kBlock) {
    const Range block{begin, std::min(begin + kBlock, length)};
    for (const Merge& merge : merges) {
      add(part(pieces[static_cast<std::size_t>(merge.target)], block),
          part(std::span<const Scalar>(pieces[static_cast<std::size_t>(merge.source)]), block));
    }
  }
}

double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  return sum_node(values.data(), 1, {0, static_cast<Index>(values.size())});
}

void tree_sum_rows(std::span<const double> rows, Index stride, Range node, std::span<double> sums) {
  for (std::size_t column = 0; column < sums.size(); ++column) {
    sums[column] = sum_node(rows.data() + column, stride, node);
  }
}

}  // namespace lockstep
