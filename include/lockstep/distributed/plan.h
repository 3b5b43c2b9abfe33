// The replicas that each rank hosts, and the ranges of the arena that are sent together: a pure function of
// the config and the number of ranks, the same on every rank, and known without MPI.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/options.h"
#include "lockstep/nn/params.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

// The arena cut into blocks, each inside one tensor: the grain in which weights have owners. Norms over
// weights of several owners are sums over blocks in order, so they have the same bits whoever owns what.

/// How large blocks are: kSquareBlock, or whole tensors for owners who need one, or its norm, by themselves.
enum class Grain { kBlock, kTensor };

class BlockGrid {
 public:
  explicit BlockGrid(const Layout& layout, Grain grain = Grain::kBlock);

  Grain grain() const { return grain_; }
  Index count() const { return std::ssize(begins_); }
  /// The offset at which a block begins in the arena.
  Index begin(Index block) const { return at(begins_, block); }
  /// The blocks of a tensor, by its offset in the layout.
  Range of_param(std::size_t param) const { return params_[param]; }
  /// The blocks that begin in a range of the arena.
  Range inside(Range arena) const;

 private:
  Grain grain_;
  std::vector<Index> begins_;
  std::vector<Range> params_;
};

/// Cuts `range` of the arena (whole blocks) into a contiguous slice for each rank, at borders of blocks and
/// as evenly as these allow; the last non-empty slice goes to the end of the range. With fewer blocks than
/// ranks some slices are empty.
std::vector<Range> owner_slices(const BlockGrid& grid, Range range, Index world);
/// Cuts one range after another: whole tensors go to ranks that have less so far. `loads`: by rank, the
/// numbers that it has; those of its slice are added.
std::vector<Range> owner_slices(const BlockGrid& grid, Range range, std::span<Index> loads);

/// A range of the gradient arena that is sent together: small layers, or a part of a large one.
struct Bucket {
  Range range;
  bool divided = false;  ///< a DividedTensor: each rank has the whole sum of what it owns, and sends nothing
};

/// The weight of a layer whose units the ranks divide among themselves (tensor parallel).
struct DividedTensor {
  Index op = 0;                ///< number of the op in the model
  Range range;                 ///< in the arena
  std::vector<Range> blocks;   ///< blocks of units (split_layer.h) that each rank owns
  std::vector<Range> weights;  ///< their ranges in the arena
};

struct PlanRequest {
  Index world = 1;    ///< ranks
  Index servers = 0;  ///< ranks that are servers: the last ones
  Index replicas = 1;
  Index threads = 1;                          ///< per worker
  Index max_rows = 1;                         ///< samples of a replica in a step, at most
  std::vector<FactoredTensor> factored = {};  ///< tensors of the model whose gradients can be factors
  Grain grain = Grain::kBlock;                ///< the unit of the weights that has one owner
  std::vector<DividedTensor> divided = {};    ///< in the order of their ranges
};

/// Behind the gradients of the weights, the gradient arena carries the sum of the losses: it is sent with the
/// bucket that leaves first, so that all ranks know in the same step if a loss is not a number.
struct Plan {
  Index world = 1;
  Index servers = 0;  ///< the last ranks; they host no replica, and own the weights. Without any, workers do
  Index replicas = 1;
  Index threads = 1;
  std::vector<Range> hosted;               ///< replicas of each rank
  std::vector<Bucket> buckets;             ///< buckets in the order in which they leave, last layer first
  std::vector<std::vector<Range>> slices;  ///< ranges that ranks own, by bucket and rank
  Index gradient_size = 0;                 ///< scalars in a gradient arena
  Index loss_offset = 0;                   ///< offset of the loss in it
  Index max_rows = 1;                      ///< samples of a replica in a step, at most
  /// Tensors whose gradients workers of one node do better to leave as factors, where the strategy can take
  /// those: the samples of all replicas are much less to read and write than the gradient.
  std::vector<FactoredTensor> factored;
  Index local_from = 0;  ///< the first local step (from 0) of replicas, with strategies that have them
  std::vector<DividedTensor> divided = {};  ///< see PlanRequest

  Index workers() const { return world - servers; }
  /// The replicas of `rank`.
  Range hosted_by(Index rank) const { return at(hosted, rank); }
  bool several_buckets() const { return buckets.size() > 1; }
  /// Ranges of the arena of weights that `rank` owns, in order.
  std::vector<Range> owned(Index rank) const;
  /// Scalars of all divided tensors, and of what other ranks own of them.
  Index divided_size() const;
  Index divided_elsewhere(Index rank) const;
  /// The replicas of `rank` that its thread `thread` runs.
  Range thread_replicas(Index rank, Index thread) const {
    return split_evenly(hosted_by(rank), threads, thread);
  }
  /// A plan of these ranks and replicas, to exchange other buckets.
  Plan without_buckets() const;
};

/// Memory for an arena of numbers: with divided tensors in pages that are taken when they are first touched,
/// since a rank touches only what it owns of them.
class ArenaMemory {
 public:
  ArenaMemory() = default;
  ArenaMemory(const Plan& plan, Index size)
      : memory_(plan.divided.empty() ? size : 0), pages_(plan.divided.empty() ? 0 : size) {}

  std::span<Scalar> span() { return pages_.size() > 0 ? pages_.span() : memory_.span(); }
  /// With divided tensors: see PageMemory::release().
  void release(Range range) { pages_.release(range); }

 private:
  AlignedBuffer<Scalar> memory_;
  PageMemory pages_;
};

/// The parts of a range of the arena that belong to none of these tensors, in order.
void for_each_outside(std::span<const FactoredTensor> tensors, Range range,
                      const std::function<void(Range)>& work);

/// Errors: ConfigError if a worker would have no replica, or more threads than replicas.
Plan make_plan(const DistOptions& options, const Layout& layout, const PlanRequest& request);

// The place of each rank where the model is divided: its stage, and its group of ranks that have all stages.

class StageGrid {
 public:
  /// Requires that `stages` divides `ranks`.
  StageGrid(Index ranks, Index stages, StagePlacement placement)
      : stages_(stages), groups_(ranks / stages), placement_(placement) {}

  Index stages() const { return stages_; }
  Index groups() const { return groups_; }
  /// Within a group the stages are in the order of the ranks; of a stage, so are the groups.
  Index stage_of(Index rank) const { return neighbours() ? rank % stages_ : rank / groups_; }
  Index group_of(Index rank) const { return neighbours() ? rank / stages_ : rank % groups_; }
  Index rank_of(Index group, Index stage) const {
    return neighbours() ? group * stages_ + stage : stage * groups_ + group;
  }

  /// The workers of `stage` on each node that has any, in order. `nodes`: ranks of each node, in order.
  std::vector<Index> workers_on_nodes(std::span<const Index> nodes, Index stage) const;

 private:
  bool neighbours() const { return placement_ == StagePlacement::kNeighbours; }

  Index stages_;
  Index groups_;
  StagePlacement placement_;
};

// The memory of an optimizer beside weights and gradients, known before the run.

class OptimizerMemory {
 public:
  /// An optimizer of so many numbers for each weight.
  OptimizerMemory(Index slots = 0) : slots_(slots) {}
  OptimizerMemory(const Optimizer& optimizer, const Layout& layout);

  /// Slots that one weight may have.
  Index slots() const { return slots_; }
  /// The grain in which weights have owners, where these take the steps.
  Grain grain() const { return grid_ ? Grain::kTensor : Grain::kBlock; }
  /// Bytes of the owner of these ranges of the arena, who takes the steps on so many threads.
  Index bytes(std::span<const Range> owned, Index threads) const;
  /// Bytes of one of `owners`, who have the first `size` numbers of the arena among themselves.
  Index share_bytes(Index size, Index owner, Index owners, Index threads) const;
  /// Bytes in a checkpoint, for so many weights in all.
  Index saved_bytes(Index parameters) const;

 private:
  struct Tensor {
    Range range;
    Index state = 0;
    Index held = 0;  // the same with gaps for alignment
    Index scratch = 0;
  };

  Index slots_;
  std::optional<BlockGrid> grid_;  // blocks of whole tensors; empty if the optimizer does not need those
  std::vector<Tensor> tensors_;    // likewise
};

}  // namespace lockstep
