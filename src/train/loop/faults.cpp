#include "gradient_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"
#include "lockstep/nn/stages.h"

namespace lockstep {
namespace {

constexpr const char* kAdvice = "Lower train.lr, add train.warmup, or clip with train.clip_norm";

void hang(const DebugOptions& debug, Communicator& comm) {
  const bool mine = comm.rank() == debug.hang_rank;
  if (debug.hang == Hang::kSkip) {
    if (!mine) comm.barrier();
    return;
  }
  volatile bool forever = mine;
  while (forever) {
  }
}

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

// Finds the first bad number after a step whose loss or gradient is not finite: the passes are repeated with
// all activations kept, and searched in the order of the model, so that the answer does not depend on which
// rank hosts which replica.
namespace {

// Tensors of the whole model from this one on.
Index params_behind(const Model& model, const std::string& name) {
  const std::vector<ParamInfo>& params = model.whole().layout().params;
  return params.end() - std::ranges::find(params, name, &ParamInfo::name);
}

// In the backward pass the last layer comes first.
BadNumber check_gradient(const Model& model, const StepReplica& replica, const LossSums& tally) {
  const Scalar limit = max_sum(tally.weight);
  const std::vector<ParamInfo>& params = model.layout().params;
  for (std::size_t i = params.size(); i-- > 0;) {
    if (all_within(part(std::span<const Scalar>(replica.target.arena), params[i].range), limit)) continue;
    return {std::ssize(model.whole().ops()) + 1 + params_behind(model, params[i].name),
            fmt::format("replica {}: the gradient of {} ({}) is not finite or beyond 1e18", replica.number,
                        params[i].name, model.op(params[i].layer).title)};
  }
  return {};
}

// Forward and backward through all chunks, with the part of the replica that is under way.
void repeat(ReplicaPass& pass, std::span<const MicroBatch> chunks) {
  StepReplica& replica = chunks.front().replica;
  LossSums& tally = pass.tally_of(replica);
  tally = {};
  if (!needs_targets(pass.step().training.model)) {
    tally.weight = replica.batch->weights_of(replica.rows).sum(replica.rows.size());
  }
  for (const MicroBatch& batch : chunks) {
    pass.begin_forward(batch, {});
    batch.workspace.forward(pass.ops_of(batch));
    pass.stages().send(Pipeline::Direction::kForward, batch);
  }
  for (auto batch = chunks.rbegin(); batch != chunks.rend(); ++batch) pass.backward(*batch, {});
}

}  // namespace

BadNumber check_values(const Model& chunk, const Workspace& workspace, const StepReplica& replica,
                       const LossSums& tally) {
  if (const std::optional<Index> op = workspace.first_bad_op()) {
    return {chunk.number_in_whole(*op), fmt::format("replica {}: {} gives a value that is not finite",
                                                    replica.number, chunk.op(*op).title)};
  }
  const std::array loss{static_cast<Scalar>(tally.loss)};
  if (all_finite(loss)) return {};
  return {std::ssize(chunk.whole().ops()),
          fmt::format("replica {}: the loss itself is not finite", replica.number)};
}

BadNumber check_again(ReplicaPass& pass, const StepReplica& in_step) {
  const TrainingContext& context = pass.step().training;
  AlignedBuffer<Scalar> arena(pass.step().plan.gradient_size);
  StepReplica replica = in_step;
  replica.factors.clear();  // all gradients are to be seen
  const Index parts = std::min(context.settings.accumulate, replica.batch->rows);
  std::vector<std::unique_ptr<Workspace>> workspaces;
  std::vector<MicroBatch> chunks;
  for (Index i = 0; i < context.model.chunks(); ++i) {
    workspaces.push_back(std::make_unique<Workspace>(
        context.model.chunk(i), divide_up(replica.batch->rows, parts), ActivationRetention::kAll));
    chunks.push_back({.replica = replica,
                      .workspace = *workspaces.back(),
                      .chunk = i,
                      .slot = static_cast<std::size_t>(i)});
  }
  BadNumber first;
  const auto take = [&first](const BadNumber& found) {
    if (found.order < first.order) first = found;
  };
  const LossSums& tally = pass.tally_of(replica);
  for (Index i = 0; i < parts; ++i) {
    replica.rows = split_evenly(replica.batch->rows, parts, i);
    replica.target = {arena.span(), Write::kReplace};
    repeat(pass, chunks);
    for (const MicroBatch& batch : chunks) {
      take(check_values(context.model.chunk(batch.chunk), batch.workspace, replica, tally));
    }
    take(check_gradient(context.model, replica, tally));
  }
  pass.stages().finish();
  return first;
}

void force_faults(const DebugOptions& debug, Communicator& comm, Index step) {
  const int rank = comm.rank();
  if (debug.delay_rank == rank) std::this_thread::sleep_for(std::chrono::milliseconds(debug.delay_ms));
  if (debug.fail_rank == rank && debug.fail_step == step) {
    throw std::runtime_error(
        fmt::format("debug.fail_rank {} fails at step {} as asked", debug.fail_rank, step));
  }
  if (debug.hang_rank >= 0 && debug.hang_step == step) hang(debug, comm);
}

void flip_bit(const DebugOptions& debug, Communicator& comm, Scalar& weight) {
  if (comm.rank() == debug.flip_rank) {
    weight = std::bit_cast<Scalar>(std::bit_cast<std::uint32_t>(weight) ^ (std::uint32_t{1} << 20));
  }
  comm.barrier();  // the others may share that memory
}

}  // namespace lockstep
