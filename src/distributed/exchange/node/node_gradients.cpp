#include "node_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {

NodeGradients::NodeGradients(const NodeContext& context)
    : plan_(context.plan),
      reduction_(context.reduction),
      arena_bytes_(round_up(plan_.gradient_size * Index{sizeof(Scalar)}, kAlignmentBytes)),
      weights_bytes_(context.keeps_weights ? arena_bytes_ : 0),
      shared_size_(context.shared_size),
      node_(context.comm.split_by_node(context.ranks_per_node)),
      across_(context.comm.split(node_->rank(), context.comm.rank())),
      layout_(lay_out_node(context.comm, *node_, *across_, plan_, context.cut, context.user)) {
  try {
    agree(context.comm, [&] {
      window_ = node_->shared_window(first_arena(node_->rank()) + context.arenas * arena_bytes_);
    });
  } catch (const AgreedError&) {
    window_.reset();  // here, where all ranks of the node do
    throw;
  }
}

Index NodeGradients::header_bytes() {
  return sizeof(Header);
}

NodeGradients::Header& NodeGradients::header(int rank) {
  return *reinterpret_cast<Header*>(window_->part(rank).data() + header_offset(rank));
}

std::span<Scalar> NodeGradients::scalars(int rank, Index offset, Index size) {
  auto* memory = reinterpret_cast<Scalar*>(window_->part(rank).data() + offset);
  return {memory, static_cast<std::size_t>(size)};
}

std::span<Scalar> NodeGradients::weights() {
  return scalars(0, 0, plan_.loss_offset);
}

std::span<Scalar> NodeGradients::arena() {
  return scalars(node_->rank(), first_arena(node_->rank()) + arenas_taken_.fetch_add(1) * arena_bytes_,
                 plan_.gradient_size);
}

void NodeGradients::begin_step(std::span<const Index> samples) {
  if (std::ranges::equal(samples, samples_)) return;
  samples_.assign(samples.begin(), samples.end());
  nodes_of_.clear();
  for (const Range hosted : layout_.hosted) {
    nodes_of_.push_back(reduction_ == Reduction::kOrdered ? present_subtrees(plan_.replicas, hosted, samples_)
                                                          : std::vector{hosted});
  }
}

void NodeGradients::post_status(const PartialGrads& partial, bool good) {
  const auto count = std::ssize(partial.sums);
  if (count > kMaxSums) {
    throw CommError(fmt::format("a rank has {} partial sums, more than {}", count, kMaxSums));
  }
  const std::byte* mine = window_->part(node_->rank()).data();
  Header& note = header(node_->rank());
  note.sums = count;
  note.good = good ? 1 : 0;
  for (std::size_t i = 0; i < partial.sums.size(); ++i) {
    note.offsets[i] = reinterpret_cast<const std::byte*>(partial.sums[i].data()) - mine;
    assert(note.offsets[i] >= first_arena(node_->rank()) && "a partial sum is not in the node's memory");
  }
}

const PartialGrads& NodeGradients::collect() {
  std::vector<Range> nodes;
  arenas_.clear();
  all_good_ = true;
  for (int rank = 0; rank < node_->size(); ++rank) {
    const Header& note = header(rank);
    all_good_ &= note.good == 1;
    const std::vector<Range>& theirs = at(nodes_of_, rank);
    for (std::size_t i = 0; i < static_cast<std::size_t>(note.sums); ++i) {
      nodes.push_back(theirs[i]);
      arenas_.push_back(scalars(rank, note.offsets[i], plan_.gradient_size));
    }
  }
  sums_ = {};
  if (reduction_ == Reduction::kNative) {
    merges_.clear();
    for (Index i = 1; i < std::ssize(arenas_); ++i) merges_.push_back({0, i});
    sums_ = {.subtrees = {layout_.replicas}, .sums = {arenas_.front()}};
    first_sum_ = 0;
    return sums_;
  }
  // No further than the node's replicas reach.
  const MergePlan merged = plan_merges(nodes, complete_subtrees(plan_.replicas, layout_.replicas));
  merges_ = merged.merges;
  sums_.subtrees = merged.subtrees;
  if (!merged.survivors.empty()) first_sum_ = merged.survivors.front();
  for (const Index survivor : merged.survivors) {
    sums_.sums.push_back(at(arenas_, survivor));
  }
  return sums_;
}

void NodeGradients::add(Range range) {
  std::vector<std::span<Scalar>> pieces;
  pieces.reserve(arenas_.size());
  for (const std::span<Scalar> arena : arenas_) pieces.push_back(part(arena, range));
  apply_merges(merges_, pieces);
}

// Arenas whose lines other ranks have in their caches are not written to where that can be helped. What is
// likely to be added next is asked for: the processor itself stops at the ends of these arenas' small pages.
std::span<Scalar> NodeGradients::sum(Range range, std::span<Scalar> target) {
  const Range behind{range.end, std::min(range.end + range.size(), plan_.gradient_size)};
  const auto of = [&](Index arena, Range here) { return part(at(arenas_, arena), here); };
  bool begun = false;
  for (const Merge& merge : merges_) {
    prefetch_to_read(of(merge.source, behind));
    if (merge.target != first_sum_) {
      prefetch_to_write(of(merge.target, behind));
      lockstep::add(of(merge.target, range), of(merge.source, range));
    } else if (begun) {
      lockstep::add(target, of(merge.source, range));
    } else {
      prefetch_to_read(of(merge.target, behind));
      lockstep::add(of(merge.target, range), of(merge.source, range), target);
      begun = true;
    }
  }
  return begun ? target : of(first_sum_, range);
}

Scalar NodeGradients::sum_at(Index offset) {
  scalars_.clear();
  for (const std::span<Scalar> arena : arenas_) scalars_.push_back(at(arena, offset));
  std::vector<std::span<Scalar>> pieces;
  for (Scalar& scalar : scalars_) pieces.emplace_back(&scalar, 1);
  apply_merges(merges_, pieces);
  return at(scalars_, first_sum_);
}

}  // namespace lockstep
