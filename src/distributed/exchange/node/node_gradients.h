// The gradients of a node's ranks, in memory that they share: each rank takes its arenas there, notes for the
// others where its partial sums are, and adds its own slice of them, for all ranks of the node.
//
// The caller synchronises the ranks between the calls: after post_status() of all ranks of the node,
// collect() and add(); after add() of the owner of a slice, its sum may be read.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/math/fixed_tree.h"
#include "node_layout.h"

namespace lockstep {

/// `comm` and `plan` outlive what is made from it.
struct NodeContext {
  Communicator& comm;
  const Plan& plan;
  Reduction reduction = Reduction::kNative;
  NodeCut cut;
  Index arenas = 1;            ///< arenas that this rank takes, at most
  Index ranks_per_node = 0;    ///< nodes are taken for so small; 0: as they are
  bool keeps_weights = false;  ///< one copy of the weights for each node too
  Index shared_size = 0;       ///< scalars more that all ranks of the node share
  std::string user = {};       ///< the setting that needs it, for errors
};

class NodeGradients {
 public:
  /// *Collective.* Errors: AgreedError if the nodes do not suit, or if the memory of one is too small.
  explicit NodeGradients(const NodeContext& context);

  Communicator& node() { return *node_; }
  /// The ranks that own the same slices on other nodes.
  Communicator& across() { return *across_; }
  const NodeLayout& layout() const { return layout_; }
  /// *Collective* over the node, blocking.
  void fence() { window_->fence(); }

  /// *Local.* The node's copy of the weights.
  std::span<Scalar> weights();
  /// *Local.* Those, zeroed at first.
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
  static Index header_bytes();

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
  Header& header(int rank);
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
  std::vector<std::vector<Range>>
      nodes_of_;                           // the subtrees of the tree that each rank of the node contributes
  std::vector<std::span<Scalar>> arenas_;  // partial sums of the node's ranks, in order
  std::vector<Merge> merges_;
  PartialGrads sums_;
  Index first_sum_ = 0;          // index in arenas_ of the first of sums_
  std::vector<Scalar> scalars_;  // scalars at one offset, one for each of arenas_
  bool all_good_ = true;
};

}  // namespace lockstep
