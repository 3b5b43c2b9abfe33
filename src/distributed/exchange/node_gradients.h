// The gradients of a node's ranks, in memory that they share: each rank takes its arenas there, notes for the
// others where its partial sums are, and adds its own slice of them, for all ranks of the node.
//
// The caller synchronises the ranks between the calls: after post_status() of all ranks of the node,
// collect() and add(); after add() of the owner of a slice, its sum may be read.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {

// Ownership among ranks of a node that share memory: a slice of each bucket for each of them, the same on all
// nodes.

/// Cuts a range of the gradient arena into so many slices.
using Cut = std::function<std::vector<Range>(Range range, Index parts)>;

struct NodeLayout {
  std::vector<Range> hosted;  ///< replicas of each rank of the node
  Range replicas;             ///< replicas of the whole node
  std::vector<Range> slices;  ///< what this rank owns of each bucket; may be empty
  Plan across;                ///< plan for the exchange of those slices, between nodes as its ranks
};

/// The plan over `across` for an owner's share of the whole arena, on nodes with so many ranks each, in
/// order. Known before the run.
Plan plan_across(const Plan& plan, std::span<const Index> nodes);

/// The node of a rank, and the rank's number on it.
struct RankOnNode {
  Index node = 0;
  Index rank = 0;
};
RankOnNode find_on_node(std::span<const Index> nodes, Index rank);

/// The first ranks of each node, that own a slice: as many as the smallest node has. The others own nothing.
Index owners_on_node(std::span<const Index> nodes);

/// A demand on the memory of a node.
struct NodeRequest {
  std::string user;             ///< the setting that needs it, for errors
  std::vector<Bucket> buckets;  ///< of the arena, of which several ranks own parts
  Cut cut;                      ///< into these parts
  bool keeps_weights = false;   ///< one copy of the weights for each node too
  Index shared_size = 0;        ///< scalars more that all ranks of the node share
};

class NodeGradients {
 public:
  /// *Collective.* Errors: AgreedError if the ranks of a node are not neighbours, or if the memory of one is
  /// too small.
  NodeGradients(const ExchangeRequest& request, const NodeRequest& memory);

  Communicator& node() { return *node_; }
  /// The ranks that own the same slices on other nodes.
  Communicator& across() { return *across_; }
  const NodeLayout& layout() const { return layout_; }
  /// *Collective* over the node, blocking.
  void fence() { window_->fence(); }

  /// *Local.* The node's copy of the weights.
  std::span<Scalar> weights() { return scalars(0, 0, plan_.loss_offset); }
  /// *Local.* The scalars that all ranks of the node share, zeroed at first.
  std::span<Scalar> shared() { return scalars(0, weights_bytes_, shared_size_); }
  /// *Local, any thread.* One more arena for partial sums.
  std::span<Scalar> arena();

  /// *Local.* Samples of each replica in the step that begins.
  void begin_step(std::span<const Index> samples);
  /// *Local.* Publishes where the partial sums of this rank are, all taken by arena(), and whether they are
  /// good numbers.
  void post_status(const PartialGrads& partial, bool good = true);
  /// *Local.* Reads the notes. What add() will leave: the node's partial sums, in some of its arenas.
  const PartialGrads& collect();
  /// *Local*, after collect(). Whether all ranks of the node said so.
  bool all_good() const { return all_good_; }
  /// *Local, any thread*, after collect(). Adds the partial sums of the node's ranks in a range.
  void add(Range range);
  /// *Local, any thread*, after collect(), where that gives one sum. The same sum, written to `target`, or
  /// where it is already.
  std::span<Scalar> sum(Range range, std::span<Scalar> target);
  /// *Local*, after collect(). What add() would give at one offset, which it leaves as it is.
  Scalar sum_at(Index offset);
  /// *Local.* The arena in which `rank` of the node expects the sums: its first arena, which may hold one of
  /// its partial sums. The owner of a slice writes there once nobody needs those of the slice any more.
  std::span<Scalar> result(int rank) { return scalars(rank, first_arena(rank), plan_.gradient_size); }

  /// Buckets that a rank of the node has handed in, or has finished, since the start; see NodeReducer.
  std::atomic_ref<Index> ready(int rank) { return std::atomic_ref(header(rank).ready); }
  std::atomic_ref<Index> done(int rank) { return std::atomic_ref(header(rank).done); }

  /// Bytes of a rank's part beside its arenas.
  static Index header_bytes() { return sizeof(Header); }

 private:
  static constexpr Index kMaxSums = 126;
  // In shared memory, zeroed at first. What one rank writes while others read something else has a cache
  // line of its own.
  struct Header {
    alignas(kAlignmentBytes) Index sums;
    Index good;               // 0 or 1
    Index offsets[kMaxSums];  // bytes in the part
    alignas(kAlignmentBytes) Index ready;
    alignas(kAlignmentBytes) Index done;
  };

  Index shared_bytes() const { return round_up(shared_size_ * Index{sizeof(Scalar)}, kAlignmentBytes); }
  Index header_offset(int rank) const { return rank == 0 ? weights_bytes_ + shared_bytes() : 0; }
  Index first_arena(int rank) const { return header_offset(rank) + header_bytes(); }
  Header& header(int rank) {
    return *reinterpret_cast<Header*>(window_->part(rank).data() + header_offset(rank));
  }
  std::span<Scalar> scalars(int rank, Index offset, Index size);

  const Plan& plan_;
  Reduction reduction_;
  Index arena_bytes_;
  Index weights_bytes_;  // size of the weights at the start of the first rank's part
  Index shared_size_;    // scalars behind the weights
  std::unique_ptr<Communicator> node_;
  std::unique_ptr<Communicator> across_;
  NodeLayout layout_;
  std::unique_ptr<SharedWindow> window_;
  std::atomic<Index> arenas_taken_ = 0;
  std::vector<Index> samples_;
  std::vector<std::vector<Range>> subtrees_of_;  // the subtrees that each rank of the node contributes
  std::vector<std::span<Scalar>> arenas_;        // partial sums of the node's ranks, in order
  std::vector<Merge> merges_;
  PartialGrads sums_;
  Index first_sum_ = 0;          // index in arenas_ of the first of sums_
  std::vector<Scalar> scalars_;  // scalars at one offset, one for each of arenas_
  bool all_good_ = true;
};

}  // namespace lockstep
