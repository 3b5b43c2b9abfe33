// Sums of a few numbers of each replica over those that belong together: batch statistics. Along the fixed
// tree, so the same bits on any number of ranks.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/plan.h"

namespace lockstep {

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

}  // namespace lockstep
