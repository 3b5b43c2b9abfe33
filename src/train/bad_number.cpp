// Where a number went bad, after a step whose loss or gradient is not finite.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/train/gradient_step.h"

namespace lockstep {

std::string GradientStep::find_bad_number(const StepBatch& batch) {
  begin(batch);
  for (Replica& replica : replicas_) {
    if (replica.rows.empty()) continue;
    // Replicas that meet still have their activations: their own samples alone would not bring them back.
    std::string found = together() ? check(*workspaces_[local(replica)], replica, replica.target.arena)
                                   : check_again(replica);
    if (!found.empty()) return found;
  }
  return "";
}

std::string GradientStep::check_again(const Replica& in_step) {
  AlignedBuffer<Scalar> arena(context_.plan.gradient_size);
  Replica replica = in_step;
  Workspace& workspace = *workspaces_.front();
  const Index parts = std::min(context_.accumulate, replica.batch->rows);
  for (Index i = 0; i < parts; ++i) {
    replica.rows = split_evenly(replica.batch->rows, parts, i);
    replica.target = {arena.span(), Write::kReplace};
    tallies_[local(replica)] = {};
    start_pass(workspace, replica);
    workspace.forward({0, nodes_});
    evaluate_loss(workspace, replica);
    workspace.backward(arena.span(), Write::kReplace, {});
    std::string found = check(workspace, replica, arena.span());
    if (!found.empty()) return found;
  }
  return "";
}

std::string GradientStep::check(const Workspace& workspace, const Replica& replica,
                                std::span<const Scalar> gradient) const {
  if (const std::optional<Index> node = workspace.first_bad_node()) {
    return fmt::format("replica {}: {} gives a value that is not finite", replica.number,
                       context_.model.node(*node).title);
  }
  const Tally& tally = tallies_[local(replica)];
  const std::array loss{static_cast<Scalar>(tally.loss)};
  if (!all_finite(loss)) return fmt::format("replica {}: the loss itself is not finite", replica.number);
  for (const ParamInfo& param : context_.model.layout().params) {
    const Scalar limit = kMostGradient * static_cast<Scalar>(tally.samples);
    if (all_within(part(gradient, param.range), limit)) continue;
    return fmt::format("replica {}: the gradient of {} ({}) is not finite or beyond 1e18", replica.number,
                       param.name, context_.model.node(param.layer).title);
  }
  return "";
}

}  // namespace lockstep
