#include "node_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {
namespace {

// Whether the ranks of this node, as numbered in the whole, follow each other.
bool follow_each_other(const std::vector<Index>& ranks) {
  return ranks.back() - ranks.front() + 1 == std::ssize(ranks);
}

// *Collective.* `across`: the ranks that own the same slices on other nodes.
NodeLayout lay_out_node(const ExchangeRequest& request, Communicator& node, Communicator& across,
                        const NodeRequest& memory) {
  Communicator& comm = request.comm;
  const Plan& plan = request.plan;
  NodeLayout result;
  const std::vector<Index> ranks = gather_numbers(node, comm.rank());
  for (const Index rank : ranks) result.hosted.push_back(plan.hosted_by(rank));
  result.replicas = {result.hosted.front().begin, result.hosted.back().end};
  if (!all_true(comm, follow_each_other(ranks))) {
    throw AgreedError(
        fmt::format("{} needs neighbouring ranks on each node, but the launcher placed them in turn; "
                    "start them node by node (mpirun --map-by core, srun --distribution=block)",
                    memory.user),
        kExitConfig);
  }

  // As many slices as the smallest node has ranks, so that each slice has an owner on every node.
  const std::vector<Index> sizes = gather_numbers(comm, node.size());
  const Index parts = *std::ranges::min_element(sizes);
  const std::vector<Index> begins = gather_numbers(across, result.replicas.begin);
  const std::vector<Index> ends = gather_numbers(across, result.replicas.end);
  Plan& between = result.across = plan.without_buckets();
  between.world = across.size();
  between.hosted.clear();
  for (std::size_t i = 0; i < begins.size(); ++i) between.hosted.push_back({begins[i], ends[i]});
  for (const Bucket& bucket : memory.buckets) {
    Range slice{bucket.range.begin, bucket.range.begin};
    if (node.rank() < parts) slice = at(memory.cut(bucket.range, parts), node.rank());
    result.slices.push_back(slice);
    between.buckets.push_back({.range = slice});
    between.slices.push_back(memory.cut(slice, across.size()));
  }
  return result;
}

}  // namespace

NodeGradients::NodeGradients(const ExchangeRequest& request, const NodeRequest& memory)
    : plan_(request.plan),
      reduction_(request.options.reduction),
      arena_bytes_(round_up(plan_.gradient_size * Index{sizeof(Scalar)}, kAlignmentBytes)),
      weights_bytes_(memory.keeps_weights ? arena_bytes_ : 0),
      shared_size_(memory.shared_size),
      node_(request.comm.split_by_node(request.ranks_per_node)),
      across_(request.comm.split(node_->rank(), request.comm.rank())),
      layout_(lay_out_node(request, *node_, *across_, memory)) {
  try {
    agree(request.comm, [&] {
      window_ = node_->shared_window(first_arena(node_->rank()) + request.gradient_arenas * arena_bytes_);
    });
  } catch (const AgreedError&) {
    window_.reset();  // here, where all ranks of the node do
    throw;
  }
}

std::span<Scalar> NodeGradients::scalars(int rank, Index offset, Index size) {
  auto* memory = reinterpret_cast<Scalar*>(window_->part(rank).data() + offset);
  return {memory, static_cast<std::size_t>(size)};
}

std::span<Scalar> NodeGradients::arena() {
  return scalars(node_->rank(), first_arena(node_->rank()) + arenas_taken_.fetch_add(1) * arena_bytes_,
                 plan_.gradient_size);
}

void NodeGradients::begin_step(std::span<const Index> samples) {
  if (std::ranges::equal(samples, samples_)) return;
  samples_.assign(samples.begin(), samples.end());
  subtrees_of_.clear();
  for (const Range hosted : layout_.hosted) {
    subtrees_of_.push_back(contributed_subtrees(reduction_, plan_.replicas, hosted, samples_));
  }
}

void NodeGradients::post_status(const PartialGrads& partial, bool good) {
  const auto count = std::ssize(partial.sums);
  if (count > kMaxSums) {
    throw CommError("a rank has {} partial sums, more than {}", count, kMaxSums);
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
  std::vector<Range> subtrees;
  arenas_.clear();
  all_good_ = true;
  for (int rank = 0; rank < node_->size(); ++rank) {
    const Header& note = header(rank);
    all_good_ &= note.good == 1;
    const std::vector<Range>& theirs = at(subtrees_of_, rank);
    for (std::size_t i = 0; i < static_cast<std::size_t>(note.sums); ++i) {
      subtrees.push_back(theirs[i]);
      arenas_.push_back(scalars(rank, note.offsets[i], plan_.gradient_size));
    }
  }
  // No further than the node's replicas reach.
  const MergePlan merged = plan_partial_sums(reduction_, plan_.replicas, layout_.replicas, subtrees);
  merges_ = merged.merges;
  if (!merged.survivors.empty()) first_sum_ = merged.survivors.front();
  sums_ = surviving_sums(merged, arenas_);
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

Nodes look_at_nodes(Communicator& comm, Index ranks_per_node) {
  const auto node = comm.split_by_node(ranks_per_node);
  const std::vector<Index> sizes = gather_numbers(comm, node->size());
  const std::vector<Index> first = gather_numbers(comm, node->rank() == 0 ? 1 : 0);
  return {.count = std::ranges::count(first, 1),
          .largest = *std::ranges::max_element(sizes),
          .neighbours = all_true(comm, follow_each_other(gather_numbers(*node, comm.rank())))};
}

std::vector<Index> node_sizes(Communicator& comm, Index ranks_per_node) {
  const auto node = comm.split_by_node(ranks_per_node);
  std::vector<Index> sizes = gather_numbers(comm, node->rank() == 0 ? node->size() : 0);
  std::erase(sizes, 0);
  return sizes;
}

std::vector<Index> full_nodes(Index world, Index ranks_per_node) {
  const Index full = ranks_per_node > 0 ? ranks_per_node : world;
  std::vector<Index> sizes;
  for (Index left = world; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, full));
  return sizes;
}

Plan plan_across(const Plan& plan, std::span<const Index> nodes) {
  Plan across = plan.without_buckets();
  across.world = std::ssize(nodes);
  across.hosted.clear();
  across.gradient_size = plan.gradient_size / owners_on_node(nodes);
  across.loss_offset = across.gradient_size;
  const Range slice{0, across.gradient_size};
  across.buckets = {{.range = slice}};
  across.slices.emplace_back();
  Index first = 0;
  for (Index node = 0; node < across.world; ++node) {
    const Index last = first + at(nodes, node) - 1;
    across.hosted.push_back({plan.hosted_by(first).begin, plan.hosted_by(last).end});
    across.slices.front().push_back(split_evenly(slice, across.world, node));
    first = last + 1;
  }
  return across;
}

RankOnNode find_on_node(std::span<const Index> nodes, Index rank) {
  RankOnNode found{.node = 0, .rank = rank};
  while (found.rank >= at(nodes, found.node)) found.rank -= at(nodes, found.node++);
  return found;
}

Index owners_on_node(std::span<const Index> nodes) {
  return std::ranges::min(nodes);
}

}  // namespace lockstep
