#include "bad_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/loop/gradient_step.h"

namespace lockstep {
namespace {

constexpr const char* kAdvice = "Lower train.lr, add train.warmup, or clip with train.clip_norm";

}  // namespace

void warn_of_single_values(const std::string& found) {
  log_warning(
      "{} a single value to normalise in batch norm: it has no variance, becomes a constant, and moves no "
      "running moments by itself. Set train.tail = \"drop\" to leave short last steps out, or use a larger "
      "batch or fewer replicas",
      found);
}

std::string describe_bad_number(Communicator& comm, const BadNumber& found) {
  const std::string text = text_of_first(comm, found.order, found.text);
  return text.empty() ? "the sum of the gradients is not finite or overflows" : text;
}

void stop_on_bad_number(Communicator& comm, const BadNumber& found, Index step, double loss, Index good,
                        Index skipped) {
  const std::string where = describe_bad_number(comm, found);
  const std::string before =
      skipped == 0 ? "" : fmt::format(" ({} were left out, which is train.skip_limit)", skipped);
  throw AgreedError(fmt::format("step {}: the loss is {:.6g} and training stops: {}. The weights are those "
                                "after {} good step{}{}. {}",
                                step + 1, std::isnan(loss) ? std::abs(loss) : loss, where, good,
                                good == 1 ? "" : "s", before, kAdvice),
                    kExitTraining);
}

void stop_on_late_bad_number(const std::string& found) {
  throw AgreedError(
      fmt::format("{}, and training stops. The weights are the average of all replicas, each after its last "
                  "good step. {}",
                  found, kAdvice),
      kExitTraining);
}

// Finds the first bad number after a step whose loss or gradient is not finite: the forward pass is repeated
// with all activations kept, and searched in the order of the model, so that the answer does not depend on
// which rank hosts which replica.

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
  wait_for_all_sends();
  return first;
}

BadNumber GradientStep::check_again(const Replica& in_step) {
  AlignedBuffer<Scalar> arena(context_.plan.gradient_size);
  Replica replica = in_step;
  replica.factors.clear();  // all gradients are to be seen
  const Index parts = std::min(context_.accumulate, replica.batch->rows);
  const Index rows = divide_up(replica.batch->rows, parts);
  std::vector<std::unique_ptr<Workspace>> workspaces;  // by chunk
  for (Index i = 0; i < context_.model.chunks(); ++i) {
    workspaces.push_back(
        std::make_unique<Workspace>(context_.model.chunk(i), rows, ActivationRetention::kAll));
  }
  BadNumber first;
  for (Index i = 0; i < parts; ++i) {
    replica.rows = split_evenly(replica.batch->rows, parts, i);
    replica.target = {arena.span(), Write::kReplace};
    repeat(replica, workspaces);
    const auto take = [&first](const BadNumber& found) {
      if (found.order < first.order) first = found;
    };
    for (Index chunk = 0; chunk < context_.model.chunks(); ++chunk) {
      take(check_values(*at(workspaces, chunk), replica, chunk));
    }
    take(check_gradient(replica));
  }
  return first;
}

// Forward and backward through all chunks, with the part of the replica that is under way.
void GradientStep::repeat(Replica& replica, std::span<const std::unique_ptr<Workspace>> workspaces) {
  LossSums& tally = tallies_[local(replica)];
  tally = {};
  if (!has_loss()) tally.weight = replica.batch->weights_of(replica.rows).sum(replica.rows.size());
  for (Index i = 0; i < std::ssize(workspaces); ++i) {
    Workspace& workspace = *at(workspaces, i);
    start_pass(workspace, replica, {});
    receive_tensors(Pipeline::Direction::kForward, workspace, i);
    workspace.forward({0, std::ssize(context_.model.chunk(i).ops())});
    send_and_wait(Pipeline::Direction::kForward, workspace, i);
  }
  for (Index i = std::ssize(workspaces) - 1; i >= 0; --i) {
    Workspace& workspace = *at(workspaces, i);
    const MicroBatch batch{.replica = replica, .rows = replica.rows, .chunk = i};
    begin_backward(batch, workspace);
    workspace.backward({0, std::ssize(context_.model.chunk(i).ops())}, replica.target.arena, Write::kReplace,
                       {});
    send_and_wait(Pipeline::Direction::kBackward, workspace, i);
    if (tied_gradients_) tied_gradients_->send(i, batch.number);
  }
}

// The sums of all replicas that ran in lockstep in the last part of their samples are still there, and so are
// the outputs of divided layers: a replica can go on from them alone.
BadNumber GradientStep::check_together(const Replica& in_step) {
  Replica replica = in_step;
  replica.rows = split_evenly(replica.batch->rows, context_.accumulate, context_.accumulate - 1);
  Workspace workspace(context_.model, replica.rows.size(), ActivationRetention::kOutputs, sync_points_);
  for (const Index op : sync_points_) {
    workspace.sums(op).forward = workspaces_[local(replica)]->sums(op).forward;
  }
  start_pass(workspace, replica, {});
  receive_tensors(Pipeline::Direction::kForward, workspace);
  for (const DividedTensor& tensor : context_.plan.divided) {
    std::ranges::copy(workspaces_[local(replica)]->output(tensor.op).values(),
                      workspace.output(tensor.op).data());
  }
  workspace.forward({0, ops_});
  send_and_wait(Pipeline::Direction::kForward, workspace);
  BadNumber found = check_values(workspace, replica);
  if (found.order == whole_ops() && context_.accumulate > 1) {
    found.text = fmt::format(
        "replica {}: a value in an earlier part of its samples, or the loss, is not finite", replica.number);
  }
  return found;
}

BadNumber GradientStep::check_values(const Workspace& workspace, const Replica& replica, Index chunk) const {
  const Model& model = context_.model.chunk(chunk);
  if (const std::optional<Index> op = workspace.first_bad_op()) {
    return {model.number_in_whole(*op), fmt::format("replica {}: {} gives a value that is not finite",
                                                    replica.number, model.op(*op).title)};
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
