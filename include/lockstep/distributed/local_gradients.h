// The gradients of one rank's replicas, on their way from backward to the exchange.
//
// Along the tree: each replica gets an arena of its own, and two arenas are added as soon as they are the two
// halves of a subtree of the fixed tree; so a thread never holds more than about log2(replicas) arenas. In
// one sum: a thread adds its replicas straight into one arena. What the last replica adds is merged bucket by
// bucket, so that a bucket can leave while backward goes on. Per replica: each replica keeps an arena, and
// nothing is added.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/math/fixed_tree.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// How a rank adds the gradients of its replicas.
enum class LocalSums { kOneSum, kAlongTree, kPerReplica };

/// Sums that a rank hands to the exchange. Along the tree: its complete subtrees that have a sample in them;
/// in one sum: of everything; per replica: one for each replica that has a sample.
struct PartialGrads {
  std::vector<Range> subtrees;
  std::vector<std::span<Scalar>> sums;  ///< gradient arenas
};

/// The complete subtrees of the fixed tree in a range of replicas that have a sample in them (`samples`: by
/// replica): those that a rank which hosts the range contributes, in order. Native: all replicas together.
std::vector<Range> contributed_subtrees(Reduction reduction, Index replicas, Range hosted,
                                        std::span<const Index> samples);
/// The additions of such partial sums of the replicas in a range: ordered, along the fixed tree as far as the
/// range reaches; native, one after the other.
MergePlan plan_partial_sums(Reduction reduction, Index replicas, Range hosted,
                            std::span<const Range> subtrees);
/// The sums that are left after these additions of arenas.
PartialGrads surviving_sums(const MergePlan& plan, std::span<const std::span<Scalar>> arenas);

/// The arena that a replica's gradient is added to, and whether its first batch overwrites what is there.
struct GradientTarget {
  std::span<Scalar> arena;
  Write write = Write::kReplace;
};

/// Gives memory for one more arena of gradients, zeroed; empty: it may lie anywhere.
using TakeArena = std::function<std::span<Scalar>()>;

/// Arenas of gradients that a rank holds at a time, at most.
Index arenas_needed(const Plan& plan, Index rank, LocalSums sums, bool interleaved);

class LocalGradients {
 public:
  /// `plan` and the memory of `take_arena` outlive this; any thread calls that.
  /// `interleaved`: the replicas of a thread go through the model together, so none of them is complete
  /// before the others; along the tree, each then keeps an arena of its own to the end.
  /// `factored`: tensors whose gradients are left as factors, so that there is nothing of them to add.
  LocalGradients(LocalSums sums, const Plan& plan, Index rank, bool interleaved,
                 std::span<const FactoredTensor> factored, TakeArena take_arena);

  /// Forgets the last step. Main thread.
  void begin_step();
  /// The target for the gradient of `replica`, which has samples in this step. Each thread calls it for its
  /// replicas in order; threads do not disturb each other.
  GradientTarget begin_replica(Index thread, Index replica);
  /// Finishes the local sums of a range of the arena and gives all of them (only `range` and those asked for
  /// before are final). Main thread, once all threads are done with that range; ranges of a step must not
  /// overlap. `team` (may be null): threads at rest that share the work.
  const PartialGrads& combine(Range range, ThreadTeam* team);

 private:
  struct Piece {
    Range subtree;
    std::size_t arena = 0;
  };
  struct Lane {  // the state of one thread
    std::vector<std::span<Scalar>> arenas;
    std::vector<ArenaMemory> own;  // memory of those that may lie anywhere
    std::vector<std::size_t> free;
    std::vector<Piece> pieces;
  };

  std::size_t arena_for(Lane& lane);
  void merge_lane(Lane& lane);
  void plan_combination();
  void merge(Range range) const;

  LocalSums sums_;
  const Plan& plan_;
  Range local_;
  bool interleaved_;
  std::span<const FactoredTensor> factored_;
  TakeArena take_arena_;
  std::vector<Lane> lanes_;
  bool combination_planned_ = false;
  std::vector<std::span<Scalar>> combined_pieces_;
  std::vector<Merge> merges_;
  PartialGrads partial_;
};

// Metrics are added in double along the same fixed tree as gradients, so that they too are the same bits on
// any number of ranks.

/// *Collective, ordered.* Column sums over `leaves` rows of `columns` numbers, of which this rank holds the
/// rows `local` (row-major). The local ranges of the ranks are disjoint, in order of rank, and cover all
/// leaves.
std::vector<double> ordered_sums(Communicator& comm, std::span<const double> rows, Range local, Index leaves,
                                 Index columns);

}  // namespace lockstep
