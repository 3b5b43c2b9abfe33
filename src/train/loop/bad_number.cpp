// Finds the first bad number after a step whose loss or gradient is not finite: the forward pass is repeated
// with all activations kept, and searched in the order of the model, so that the answer does not depend on
// which rank hosts which replica.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/train/loop/gradient_step.h"

namespace lockstep {

Index GradientStep::whole_ops() const {
  return std::ssize(context_.model.whole().ops());
}

// Tensors of the whole model from this one on.
Index GradientStep::params_behind(const std::string& name) const {
  const std::vector<ParamInfo>& params = context_.model.whole().layout().params;
  return params.end() - std::ranges::find(params, name, &ParamInfo::name);
}

BadNumber GradientStep::find_bad_number(const StepBatch& batch) {
  begin(batch);
  prepare_weights();
  BadNumber first;
  for (const Replica& replica : replicas_) {
    if (replica.rows.empty()) continue;
    const BadNumber found = together() ? check_together(replica) : check_again(replica);
    if (found.order < first.order) first = found;
  }
  return first;
}

BadNumber GradientStep::check_again(const Replica& in_step) {
  AlignedBuffer<Scalar> arena(context_.plan.gradient_size);
  Replica replica = in_step;
  replica.factors.clear();  // all gradients are to be seen
  const Index parts = std::min(context_.accumulate, replica.batch->rows);
  Workspace workspace(context_.model, divide_up(replica.batch->rows, parts), ActivationRetention::kAll);
  BadNumber first;
  for (Index i = 0; i < parts; ++i) {
    replica.rows = split_evenly(replica.batch->rows, parts, i);
    replica.target = {arena.span(), Write::kReplace};
    tallies_[local(replica)] = {};
    start_pass(workspace, replica, {});
    receive_tensors(Pipeline::Direction::kForward, workspace);
    workspace.forward({0, ops_});
    send_and_wait(Pipeline::Direction::kForward, workspace);
    if (has_loss()) {
      evaluate_loss(workspace, replica);
    } else {
      tallies_[local(replica)].weight = replica.batch->weights_of(replica.rows).sum(replica.rows.size());
      receive_tensors(Pipeline::Direction::kBackward, workspace);
    }
    workspace.backward(arena.span(), Write::kReplace, {});
    send_and_wait(Pipeline::Direction::kBackward, workspace);
    for (const BadNumber& found : {check_values(workspace, replica), check_gradient(replica)}) {
      if (found.order < first.order) first = found;
    }
  }
  return first;
}

// The sums of all replicas that ran in lockstep in the last part of their samples are still there: a replica
// can go on from them alone.
BadNumber GradientStep::check_together(const Replica& in_step) {
  Replica replica = in_step;
  replica.rows = split_evenly(replica.batch->rows, context_.accumulate, context_.accumulate - 1);
  Workspace workspace(context_.model, replica.rows.size(), ActivationRetention::kOutputs, sync_points_);
  for (const Index op : sync_points_) {
    workspace.sums(op).forward = workspaces_[local(replica)]->sums(op).forward;
  }
  start_pass(workspace, replica, {});
  receive_tensors(Pipeline::Direction::kForward, workspace);
  workspace.forward({0, ops_});
  send_and_wait(Pipeline::Direction::kForward, workspace);
  BadNumber found = check_values(workspace, replica);
  if (found.order == whole_ops() && context_.accumulate > 1) {
    found.text = fmt::format(
        "replica {}: a value in an earlier part of its samples, or the loss, is not finite", replica.number);
  }
  return found;
}

BadNumber GradientStep::check_values(const Workspace& workspace, const Replica& replica) const {
  if (const std::optional<Index> op = workspace.first_bad_op()) {
    return {context_.model.number_in_whole(*op),
            fmt::format("replica {}: {} gives a value that is not finite", replica.number,
                        context_.model.op(*op).title)};
  }
  const std::array loss{static_cast<Scalar>(tallies_[local(replica)].loss)};
  if (all_finite(loss)) return {};
  return {whole_ops(), fmt::format("replica {}: the loss itself is not finite", replica.number)};
}

// In the backward pass the last layer comes first.
BadNumber GradientStep::check_gradient(const Replica& replica) const {
  const Scalar limit = max_sum(tallies_[local(replica)].weight);
  const std::vector<ParamInfo>& params = context_.model.layout().params;
  for (std::size_t i = params.size(); i-- > 0;) {
    if (all_within(part(std::span<const Scalar>(replica.target.arena), params[i].range), limit)) continue;
    return {whole_ops() + 1 + params_behind(params[i].name),
            fmt::format("replica {}: the gradient of {} ({}) is not finite or beyond 1e18", replica.number,
                        params[i].name, context_.model.op(params[i].layer).title)};
  }
  return {};
}

}  // namespace lockstep
