#include "lockstep/distributed/ordered_sums.h"

#include <algorithm>

#include "lockstep/math/fixed_tree.h"

namespace lockstep {
namespace {

std::vector<Range> gather_ranges(Communicator& comm, Range mine) {
  const Index ends[] = {mine.begin, mine.end};
  std::vector<Index> all(2 * static_cast<std::size_t>(comm.size()));
  comm.all_gather(as_buffer(std::span<const Index>(ends)), as_buffer(std::span(all)));
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < all.size(); i += 2) ranges.push_back({all[i], all[i + 1]});
  return ranges;
}

}  // namespace

std::vector<double> ordered_sums(Communicator& comm, std::span<const double> rows, Range local, Index leaves,
                                 Index columns) {
  std::vector<Range> subtrees;        // subtrees of all ranks, in order
  std::vector<Range> parts;           // the numbers of `values` that each rank fills in
  std::vector<Range> local_subtrees;  // subtrees of this rank
  for (const Range range : gather_ranges(comm, local)) {
    const std::vector<Range> theirs = complete_subtrees(leaves, range);
    const auto before = std::ssize(subtrees);
    parts.push_back({before * columns, (before + std::ssize(theirs)) * columns});
    if (static_cast<int>(parts.size()) == comm.rank() + 1) local_subtrees = theirs;
    subtrees.insert(subtrees.end(), theirs.begin(), theirs.end());
  }

  const auto width = static_cast<std::size_t>(columns);
  std::vector<double> values(subtrees.size() * width);
  const auto row_of = [&](Index subtree) {
    return std::span(values).subspan(static_cast<std::size_t>(subtree) * width, width);
  };
  const Index first = at(parts, comm.rank()).begin / columns;
  for (std::size_t i = 0; i < local_subtrees.size(); ++i) {
    const Range subtree{local_subtrees[i].begin - local.begin, local_subtrees[i].end - local.begin};
    tree_sum_rows(rows, columns, subtree, row_of(first + static_cast<Index>(i)));
  }
  comm.start_all_gather(as_buffer(std::span(values)), parts)->wait();

  const Range whole{0, leaves};
  const MergePlan plan = plan_merges(subtrees, std::span(&whole, 1));
  for (const Merge& merge : plan.merges) {
    for (std::size_t column = 0; column < width; ++column)
      row_of(merge.target)[column] += row_of(merge.source)[column];
  }
  if (plan.survivors.empty()) return std::vector<double>(width, 0.0);
  const std::span<double> sum = row_of(plan.survivors.front());
  return {sum.begin(), sum.end()};
}

}  // namespace lockstep
