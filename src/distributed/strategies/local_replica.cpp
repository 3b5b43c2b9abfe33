#include "local_replica.h"

#include <fmt/format.h>

#include <cmath>

#include "full_update.h"
#include "lockstep/math/kernels.h"

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

}  // namespace lockstep
