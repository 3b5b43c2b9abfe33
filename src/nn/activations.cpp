// The memory for activations is planned from the runs of row_blocks.h, without a batch. An output has an
// owner: the op whose buffer stores it, also for ops that reshape or work in place. The users of an owner's
// memory are the ops that write or read it, from the first to the last; the output of the model has one more,
// the caller, behind the last op, and so have those of an ensemble's members before it.
//
// If all users are in one run, the buffer is reused for each block of samples, so it holds one block. If they
// are in several runs, or if an op reads the output again in the backward pass, it holds the whole batch.
// Gradients follow the same rule with the runs of the backward pass. Workspace allocates by these numbers,
// and the plan of a run states them before anything is allocated.
#include "lockstep/nn/activations.h"

#include <algorithm>

#include "lockstep/nn/row_blocks.h"

namespace lockstep {
namespace {

// The ops that use the memory of an output: from the first of these ops to the last.
struct Users {
  Range ops;
  bool reads_back = false;  // one of them reads the output in the backward pass
};

// Users by the op that owns the memory. The model's output is used by an imaginary op after the last: the
// caller.
std::vector<Users> users_of(const Model& model) {
  const auto& ops = model.ops();
  std::vector<Users> users(ops.size());
  const auto note = [&](Index op, Index user, bool reads_back) {
    const Index owner = op == kModelInput ? kModelInput : at(model.output_owners(), op);
    if (owner == kModelInput) return;
    Users& all = at(users, owner);
    all.ops = {all.ops.empty() ? user : all.ops.begin, std::max(all.ops.end, user + 1)};
    all.reads_back |= reads_back;
  };
  for (Index i = 0; i < std::ssize(ops); ++i) {
    const ModelOp& op = model.op(i);
    if (op.layer->only_reshapes()) continue;
    if (op.received) note(i, kModelInput, false);  // the caller fills it before the first run
    for (const Index input : op.inputs) note(input, i, op.layer->reads_input());
    note(i, i, op.layer->reads_output());
  }
  note(std::ssize(ops) - 1, std::ssize(ops), false);
  // The loss is taken of what the members of an ensemble put out.
  if (model.members() > 1) note(std::ssize(ops) - 2, std::ssize(ops), false);
  for (const Index number : model.sent()) note(number, std::ssize(ops), false);
  return users;
}

// How many samples at a time these ops see. The runs are in the order of their ops.
Index samples_at_once(const std::vector<OpRun>& runs, Range ops, Index batch) {
  const auto run =
      std::ranges::partition_point(runs, [&](const OpRun& before) { return before.ops.end <= ops.begin; });
  return run != runs.end() && run->ops.contains(ops) ? run->rows_of(batch) : batch;
}

}  // namespace

std::vector<RetainedSamples> retained_samples(const Model& model, Index batch, ActivationRetention kept) {
  const std::vector<OpRun> forward = forward_runs(model);
  const std::vector<OpRun> backward = backward_runs(model);
  const std::vector<Users> users = users_of(model);
  std::vector<RetainedSamples> samples(users.size());
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (!model.owns_output(static_cast<Index>(i)) || model.ops()[i].layer->only_reshapes()) continue;
    if (kept == ActivationRetention::kAll || kept == ActivationRetention::kOutputs) {
      samples[i] = {batch, kept == ActivationRetention::kAll ? batch : 0};
    } else if (kept == ActivationRetention::kForEvaluation) {
      samples[i].output = samples_at_once(forward, users[i].ops, batch);
    } else {
      samples[i] = {users[i].reads_back ? batch : samples_at_once(forward, users[i].ops, batch),
                    samples_at_once(backward, users[i].ops, batch)};
    }
  }
  return samples;
}

Index tied_gradient_size(const Model& model) {
  Index size = 0;
  for (const ModelOp& op : model.ops()) {
    if (op.tie && model.has_owner(*op.tie)) size = std::max(size, op.tie->weight.size());
  }
  return size;
}

Index activation_bytes(const Model& model, Index batch, ActivationRetention kept) {
  if (model.chunks() > 1) {
    Index bytes = 0;
    for (Index i = 0; i < model.chunks(); ++i) bytes += activation_bytes(model.chunk(i), batch, kept);
    return bytes;
  }
  const std::vector<RetainedSamples> samples = retained_samples(model, batch, kept);
  Index scalars = kept == ActivationRetention::kForTraining ? tied_gradient_size(model) : 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const ModelOp& op = model.ops()[i];
    scalars += (samples[i].output + samples[i].gradient) * op.out.size();
    if (!op.layer->only_reshapes()) scalars += batch * op.layer->cache_size();
  }
  return scalars * Index{sizeof(Scalar)};
}

}  // namespace lockstep
