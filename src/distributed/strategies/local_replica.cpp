#include "local_replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/math/kernels.h"
#include "sharded_update.h"

namespace lockstep {

LocalReplica::LocalReplica(Index replica, const Layout& layout, const Optimizer& optimizer,
                           const UpdateRules& rules, ThreadTeam& team)
    : number(replica), weights(layout.size), update(layout, optimizer, rules, &team), layout_(&layout) {}

void LocalReplica::step(std::span<Scalar> sum, const UpdateRequest& request) {
  if (take_full_update(update, weights.span(), sum, request).applied) return;
  bad_step = request.step;
  bad_number = fmt::format("step {}: replica {}: {}", request.step, number,
                           describe_bad_sum(*layout_, sum, request.weight));
}

void LocalReplica::add_saved(SavedState& state, bool without_weights) {
  const std::string prefix = fmt::format("replica.{}.", number);
  const Range all{0, layout_->size};
  update.add_saved(state, all, prefix);
  if (without_weights) return;
  state.push_back({.array = prefix + "weights",
                   .size = all.end,
                   .range = all,
                   .memory = as_buffer(weights.span()),
                   .written = all});
}

BlockMomentum::BlockMomentum(const DistOptions& options, Index size)
    : momentum_(static_cast<Scalar>(options.block_momentum)),
      lr_(static_cast<Scalar>(options.block_lr)),
      nesterov_(options.block_nesterov),
      last_(size),
      velocity_(size) {}

void BlockMomentum::start(std::span<const Scalar> weights) {
  std::ranges::copy(weights, last_.data());
}

void BlockMomentum::add_saved(SavedState& state, int rank) {
  state.push_back(saved_by_first(rank, "block.last", last_.span()));
  state.push_back(saved_by_first(rank, "block.velocity", velocity_.span()));
}

std::vector<NamedSpan> BlockMomentum::named_parts() {
  return {{"what the block started from", last_.span()}, {"block momentum", velocity_.span()}};
}

// With Nesterov's momentum a block starts where the velocity would lead if nothing were learned in it: both
// forms of the paper as changes of what blocks start from.
void BlockMomentum::apply(std::span<Scalar> average) {
  Scalar* const last = last_.data();
  Scalar* const velocity = velocity_.data();
  for (std::size_t i = 0; i < average.size(); ++i) {
    const Scalar change = lr_ * (average[i] - last[i]);
    velocity[i] = momentum_ * velocity[i] + change;
    last[i] += nesterov_ ? momentum_ * velocity[i] + change : velocity[i];
    average[i] = last[i];
  }
}

}  // namespace lockstep
