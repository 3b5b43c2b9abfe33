#include "lockstep/distributed/local_gradients.h"

#include <algorithm>

#include "lockstep/base/aligned_buffer.h"

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

Index arenas_needed(const Plan& plan, Index rank, LocalSums sums, bool interleaved) {
  Index total = 0;
  for (Index thread = 0; thread < plan.threads; ++thread) {
    const Range mine = plan.thread_replicas(rank, thread);
    Index most = 1;
    if (sums == LocalSums::kPerReplica || (sums == LocalSums::kAlongTree && interleaved)) most = mine.size();
    if (sums == LocalSums::kAlongTree && !interleaved) {
      for (Index next = mine.begin; next < mine.end; ++next) {
        const auto held = static_cast<Index>(complete_subtrees(plan.replicas, {mine.begin, next}).size());
        most = std::max(most, held + 1);
      }
    }
    total += most;
  }
  return total;
}

std::vector<Range> contributed_subtrees(Reduction reduction, Index replicas, Range hosted,
                                        std::span<const Index> samples) {
  if (hosted.empty()) return {};
  if (reduction == Reduction::kNative) return {hosted};
  std::vector<Range> present = complete_subtrees(replicas, hosted);
  std::erase_if(present, [&](Range subtree) {
    return std::ranges::all_of(part(samples, subtree), [](Index count) { return count == 0; });
  });
  return present;
}

MergePlan plan_partial_sums(Reduction reduction, Index replicas, Range hosted,
                            std::span<const Range> subtrees) {
  if (reduction == Reduction::kOrdered) return plan_merges(subtrees, complete_subtrees(replicas, hosted));
  if (subtrees.empty()) return {};
  MergePlan plan{.merges = {}, .survivors = {0}, .subtrees = {hosted}};
  for (Index i = 1; i < std::ssize(subtrees); ++i) plan.merges.push_back({.target = 0, .source = i});
  return plan;
}

PartialGrads surviving_sums(const MergePlan& plan, std::span<const std::span<Scalar>> arenas) {
  PartialGrads partial{.subtrees = plan.subtrees, .sums = {}};
  for (const Index survivor : plan.survivors) partial.sums.push_back(at(arenas, survivor));
  return partial;
}

LocalGradients::LocalGradients(LocalSums sums, const Plan& plan, Index rank, bool interleaved,
                               std::span<const FactoredTensor> factored, TakeArena take_arena)
    : sums_(sums),
      plan_(plan),
      local_(plan.hosted_by(rank)),
      interleaved_(interleaved),
      factored_(factored),
      take_arena_(std::move(take_arena)),
      lanes_(static_cast<std::size_t>(plan.threads)) {}

std::size_t LocalGradients::arena_for(Lane& lane) {
  if (lane.free.empty()) {
    std::span<Scalar> arena = take_arena_();
    if (arena.empty()) arena = lane.own.emplace_back(plan_, plan_.gradient_size).span();
    lane.arenas.push_back(arena);
    return lane.arenas.size() - 1;
  }
  const std::size_t arena = lane.free.back();
  lane.free.pop_back();
  return arena;
}

void LocalGradients::begin_step() {
  for (Lane& lane : lanes_) {
    for (const Piece& piece : lane.pieces) lane.free.push_back(piece.arena);
    lane.pieces.clear();
  }
  combination_planned_ = false;
}

GradientTarget LocalGradients::begin_replica(Index thread, Index replica) {
  Lane& lane = at(lanes_, thread);
  if (sums_ == LocalSums::kOneSum && !lane.pieces.empty()) {
    lane.pieces.front().subtree.end = replica + 1;
    return {lane.arenas[lane.pieces.front().arena], Write::kAdd};
  }
  if (sums_ == LocalSums::kAlongTree && !interleaved_) merge_lane(lane);
  const std::size_t arena = arena_for(lane);
  lane.pieces.push_back({{replica, replica + 1}, arena});
  return {lane.arenas[arena], Write::kReplace};
}

// Adds whole arenas until the lane holds only complete subtrees of the leaves it has behind it.
void LocalGradients::merge_lane(Lane& lane) {
  if (lane.pieces.size() < 2) return;
  std::vector<Range> subtrees;
  std::vector<std::span<Scalar>> arenas;
  for (const Piece& piece : lane.pieces) {
    subtrees.push_back(piece.subtree);
    arenas.push_back(lane.arenas[piece.arena]);
  }
  const Range behind{lane.pieces.front().subtree.begin, lane.pieces.back().subtree.end};
  const MergePlan plan = plan_merges(subtrees, complete_subtrees(plan_.replicas, behind));
  apply_merges(plan.merges, arenas);
  std::vector<Piece> kept;
  for (std::size_t i = 0; i < plan.survivors.size(); ++i) {
    kept.push_back({plan.subtrees[i], at(lane.pieces, plan.survivors[i]).arena});
  }
  for (const Merge& merge : plan.merges) {
    lane.free.push_back(at(lane.pieces, merge.source).arena);
  }
  lane.pieces = std::move(kept);
}

// Plans the additions that remain once all threads are done, in order of replicas.
void LocalGradients::plan_combination() {
  partial_ = {};
  combined_pieces_.clear();
  merges_.clear();
  if (local_.empty()) return;
  std::vector<Range> subtrees;
  for (Lane& lane : lanes_) {
    for (const Piece& piece : lane.pieces) {
      subtrees.push_back(piece.subtree);
      combined_pieces_.push_back(lane.arenas[piece.arena]);
    }
  }
  if (sums_ == LocalSums::kPerReplica) {
    partial_ = {.subtrees = subtrees, .sums = combined_pieces_};
    return;
  }
  if (sums_ == LocalSums::kOneSum && subtrees.empty()) {
    // No replica here has a sample: the others still expect a contribution.
    Lane& lane = lanes_.front();
    lane.pieces.push_back({local_, arena_for(lane)});
    subtrees.push_back(local_);
    combined_pieces_.push_back(lane.arenas[lane.pieces.front().arena]);
    std::ranges::fill(combined_pieces_.front(), Scalar{0});
  }
  const Reduction reduction = sums_ == LocalSums::kAlongTree ? Reduction::kOrdered : Reduction::kNative;
  const MergePlan plan = plan_partial_sums(reduction, plan_.replicas, local_, subtrees);
  merges_ = plan.merges;
  partial_ = surviving_sums(plan, combined_pieces_);
}

void LocalGradients::merge(Range range) const {
  std::vector<std::span<Scalar>> slices(combined_pieces_.size());
  for_each_outside(factored_, range, [&](Range whole) {
    std::ranges::transform(combined_pieces_, slices.begin(),
                           [&](std::span<Scalar> piece) { return part(piece, whole); });
    apply_merges(merges_, slices);
  });
}

const PartialGrads& LocalGradients::combine(Range range, ThreadTeam* team) {
  if (!combination_planned_) {
    plan_combination();
    combination_planned_ = true;
  }
  if (team != nullptr && team->size() > 1) {
    team->run_parts(range, [this](Range mine) { merge(mine); });
  } else {
    merge(range);
  }
  return partial_;
}

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
