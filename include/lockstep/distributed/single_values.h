// Batch norm over a single value: a short step can leave a replica one sample, and a channel one value. It
// has no variance, and is normalised to a constant. Running moments follow no such value by itself, and
// nothing that later layers make of the constant.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep {

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
