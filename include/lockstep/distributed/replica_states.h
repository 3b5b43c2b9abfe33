// The running moments of batch norm, for each replica hosted here: each keeps its own, and what goes into
// them is decided by the mode of the layer. What is evaluated and saved is the state of replica 0: with local
// its own samples' moments, with group those of its group, with averaged and sync everybody's.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/nn/model.h"

namespace lockstep {

// Sums of a few numbers of each replica over those that belong together: batch statistics. Along the fixed
// tree, so the same bits on any number of ranks.

/// Columns of a row that are added over the same replicas.
struct ScopeColumns {
  Index columns = 0;
  std::function<Range(Index replica)> scope;  ///< replicas that make the sum of this one; a partition
};

class ScopeSums {
 public:
  ScopeSums(Communicator& comm, const Plan& plan, std::vector<ScopeColumns> blocks);

  Index columns() const { return columns_; }
  /// *Collective.* `rows`: one row for each replica hosted here, zeros for one without samples; each block
  /// becomes its sum over the scope of the replica. No message is sent if no scope leaves its rank.
  void combine(std::span<double> rows);

 private:
  Communicator& comm_;
  Range hosted_;
  std::vector<ScopeColumns> blocks_;
  Index columns_ = 0;
  bool crosses_ranks_ = false;
  bool crosses_replicas_ = false;
  std::vector<Range> parts_;  // the numbers of each rank in all_
  std::vector<double> all_;   // replicas x columns
};

class ReplicaStates {
 public:
  /// All references must outlive it.
  ReplicaStates(Communicator& comm, const Plan& plan, const Model& model);

  /// The state of a replica hosted here.
  std::span<Scalar> of(Index replica) { return states_[local(replica)].span(); }
  /// *Collective.* All replicas start from replica 0's.
  void start();
  /// *Local.* The states of all replicas, as part of what is saved.
  void add_saved(SavedState& state);
  /// *Collective.* Once they are filled again: nothing is taken from replica 0.
  void resume();
  /// *Collective.* Replica 0's, on every rank; valid until the next call.
  std::span<const Scalar> gather();

  /// Forgets the sums of the last step.
  void begin_step() { std::ranges::fill(sums_, 0.0); }
  /// Adds the sums of a batch at an op with statistics: over all that the replica was normalised with.
  /// Threads may add for different replicas at a time.
  void add(Index replica, Index op, std::span<const double> sums);
  /// Takes back what was added for a replica since begin_step(): its numbers are not good.
  void forget(Index replica) { std::ranges::fill(row(replica), 0.0); }
  /// *Collective.* Moves the running moments of each layer by the moments of what was added since
  /// begin_step(), or replaces them, over the replicas of its mode.
  void update(BatchStatistics::Update update);

  /// The states of the replicas hosted here and the one state, at some moment.
  struct Copy {
    std::vector<std::vector<Scalar>> states;
    std::vector<Scalar> gathered;
    std::vector<Scalar> adopted;
  };
  /// *Local.* For restore(), after an update() with other weights than those of training.
  Copy copy() const;
  void restore(const Copy& copy);

  // With asynchronous workers there is one state, which servers keep.

  /// *Local.* Sums that were added since begin_step(), over all replicas hosted here.
  std::vector<double> sums() const;
  /// *Local.* Moves this rank's copy of the one state, or replaces its moments, by sums that a replica took
  /// anywhere since the last adopt(): replicas keep what they got then.
  void move_gathered(std::span<const double> sums, BatchStatistics::Update update) {
    update_state(sums, adopted_.span(), update, gathered_.span());
  }
  /// *Collective.* All replicas get the root's copy of the one state.
  void adopt(int root);

 private:
  struct OpColumns {
    Index op = 0;
    Range columns;  // its columns in a row of sums_
  };

  std::size_t local(Index replica) const { return static_cast<std::size_t>(replica - hosted_.begin); }
  std::span<double> row(Index replica);
  void update_state(std::span<const double> sums, std::span<const Scalar> around,
                    BatchStatistics::Update update, std::span<Scalar> state);

  Communicator& comm_;
  const Model& model_;
  Range hosted_;
  std::vector<AlignedBuffer<Scalar>> states_;
  AlignedBuffer<Scalar> gathered_;
  AlignedBuffer<Scalar> adopted_;
  std::vector<OpColumns> columns_;
  std::vector<Index> columns_of_;  // index in columns_ of each op; -1 for one without statistics
  ScopeSums scope_sums_;
  std::vector<double> sums_;  // hosted replicas x columns
};

// Batch norm over a single value: a short step can leave a replica one sample, and a channel one value. It
// has no variance, and is normalised to a constant. Running moments follow no such value by itself, and
// nothing that later layers make of the constant.

/// Follows from the numbers of samples alone, so all ranks see the same.
class SingleValues {
 public:
  /// `accumulate`: the parts in which a replica's samples pass, each normalised by itself.
  SingleValues(const Model& model, Index replicas, Index accumulate);

  /// Looks at a step in which each replica has `rows` samples; the questions below are about that step.
  void look(std::span<const Index> rows);
  /// The number of replicas of which samples are normalised as single values, in one part of the step at
  /// least.
  Index replicas() const { return replicas_with_; }
  /// The number of those among `some`.
  Index replicas(Range some) const;
  /// The first op that normalises a single value. Requires that there is one.
  Index first_op() const { return std::ranges::min(first_); }
  /// Whether running moments of `op` follow what the replica, or the scope that it is normalised with, sums
  /// up there: values before the first single one do, and that one together with others.
  bool are_followed(Index replica, Index op) const;

 private:
  // Batch norm of vectors: a sample has one value in each channel.
  struct Norm {
    Index op = 0;
    BatchNormMode mode;
  };

  bool has(Index replica) const { return at(first_, replica) < ops_; }
  Index min_normalised(Range scope) const;

  const Model& model_;
  Index accumulate_;
  Index ops_;
  bool together_;
  std::vector<Norm> norms_;
  std::vector<Index> rows_;   // rows of each replica in the step looked at
  std::vector<Index> first_;  // first op of each replica that normalises a single value; else ops_
  Index replicas_with_ = 0;
};

}  // namespace lockstep
