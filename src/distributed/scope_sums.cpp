#include "lockstep/distributed/scope_sums.h"

#include <algorithm>

#include "lockstep/math/fixed_tree.h"

namespace lockstep {

ScopeSums::ScopeSums(Communicator& comm, const Plan& plan, std::vector<ScopeColumns> blocks)
    : comm_(comm), hosted_(plan.hosted_by(comm.rank())), blocks_(std::move(blocks)) {
  for (const ScopeColumns& block : blocks_) {
    columns_ += block.columns;
    for (const Range hosted : plan.hosted) {
      for (Index replica = hosted.begin; replica < hosted.end; ++replica) {
        const Range scope = block.scope(replica);
        crosses_replicas_ |= scope.size() > 1;
        crosses_ranks_ |= !hosted.contains(scope);
      }
    }
  }
  for (const Range hosted : plan.hosted) parts_.push_back({hosted.begin * columns_, hosted.end * columns_});
  all_.resize(static_cast<std::size_t>(plan.replicas * columns_));
}

void ScopeSums::combine(std::span<double> rows) {
  if (!crosses_replicas_) return;
  std::ranges::copy(rows, all_.begin() + at(parts_, comm_.rank()).begin);
  if (crosses_ranks_) comm_.start_all_gather(as_buffer(std::span(all_)), parts_)->wait();
  Index first = 0;
  for (const ScopeColumns& block : blocks_) {
    const Range columns{first, first + block.columns};
    Range summed;
    for (Index replica = hosted_.begin; replica < hosted_.end; ++replica) {
      double* out = rows.data() + (replica - hosted_.begin) * columns_ + columns.begin;
      const Range scope = block.scope(replica);
      if (scope == summed) {
        std::copy_n(out - columns_, columns.size(), out);  // the replica before has the same scope
      } else {
        tree_sum_rows(std::span<const double>(all_).subspan(static_cast<std::size_t>(columns.begin)),
                      columns_, scope, {out, static_cast<std::size_t>(columns.size())});
        summed = scope;
      }
    }
    first = columns.end;
  }
}

}  // namespace lockstep
