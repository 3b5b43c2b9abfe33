// The memory for activations is planned from the runs of its ops (below), without a batch. An output has an
// owner: the op whose buffer stores it, also for ops that reshape or work in place. The users of an owner's
// memory are the ops that write or read it, from the first to the last; the output of the model has one more,
// the caller, behind the last op, and so have those of an ensemble's members before it.
//
// If all users are in one run, the buffer is reused for each block of samples, so it holds one block. If they
// are in several runs, or if an op reads the output again in the backward pass, it holds the whole batch.
// Gradients follow the same rule with the runs of the backward pass. Buffers of which no run needs both share
// memory, so that it stays in a cache. Workspace allocates by these numbers, and the plan of a run states
// them before anything is allocated.
#include "lockstep/nn/workspace.h"

#include <utility>

#include "lockstep/nn/split_layer.h"

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
    if (op.only_reshapes) continue;
    if (op.received) note(i, kModelInput, false);  // the caller fills it before the first run
    for (const Index input : op.inputs) note(input, i, op.reads_input);
    note(i, i, op.reads_output);
  }
  note(std::ssize(ops) - 1, std::ssize(ops), false);
  // The loss is taken of what the members of an ensemble put out.
  if (model.members() > 1) note(std::ssize(ops) - 2, std::ssize(ops), false);
  for (const Index number : model.sent()) note(number, std::ssize(ops), false);
  return users;
}

// The number of the run that has the op; those of the caller are before the first and behind the last.
Index run_of(const std::vector<OpRun>& runs, Index op) {
  const auto run =
      std::ranges::partition_point(runs, [&](const OpRun& before) { return before.ops.end <= op; });
  return op < 0 ? -1 : run - runs.begin();
}

// The runs from the first to the last user.
Range runs_of(const std::vector<OpRun>& runs, Range ops) {
  return {run_of(runs, ops.begin), run_of(runs, ops.end - 1) + 1};
}

// How many samples at a time these ops see.
Index samples_at_once(const std::vector<OpRun>& runs, Range ops, Index batch) {
  const Range users = runs_of(runs, ops);
  const bool is_one = users.size() == 1 && Range{0, std::ssize(runs)}.contains(users.begin);
  return is_one ? at(runs, users.begin).rows_of(batch) : batch;
}

// The buffer of an op, and the runs of a pass that need it.
struct Lifetime {
  Index op;
  Index size;
  Range runs;
};

// Gives each buffer, in the order in which they are needed, the lowest gap between those that are needed
// then.
SharedMemory share_memory(Index ops, std::vector<Lifetime> buffers) {
  SharedMemory plan{.begin = std::vector<Index>(static_cast<std::size_t>(ops), 0)};
  std::ranges::stable_sort(buffers, {}, [](const Lifetime& buffer) { return buffer.runs.begin; });
  std::vector<std::pair<Range, Index>> used;  // parts of the memory, in order, and the runs that free them
  for (const Lifetime& buffer : buffers) {
    const Index size = round_up(buffer.size, kAlignment);
    std::erase_if(used, [&](const auto& other) { return other.second <= buffer.runs.begin; });
    Index begin = 0;
    auto behind = used.begin();
    for (; behind != used.end() && behind->first.begin < begin + size; ++behind) begin = behind->first.end;
    used.insert(behind, {{begin, begin + size}, buffer.runs.end});
    at(plan.begin, buffer.op) = begin;
    plan.size = std::max(plan.size, begin + size);
  }
  return plan;
}

// The ops of a model are cut into runs. The ops of a run work on one block of samples after another: so the
// output of an op is still in the second-level cache when the next op reads it. The samples of a block are as
// many as fit into block_bytes with the inputs and the output of the largest op of the run.
//
// A run ends where blocks would not pay or would be wrong. An op with large weights (above kWeightBytes) gets
// a run of its own without blocks, since each block would read all its weights again. An op that shares its
// weights gets one, too, and so does one that ranks may compute together, for all samples at once
// (split_layer.h). An op with statistics needs sums over all samples, so it begins a run in the forward
// pass and is a run of its own in the backward pass. And a run's weights stay below kRunWeightBytes: their
// gradients are ready only with its last block, so longer runs would delay buckets.

// A quarter of the second-level cache of today's servers: what was fastest there. Twice that in the backward
// pass, where each block adds to the gradient of the weights. A quarter of a forward block may be weights, so
// that samples fit too.
constexpr Index kForwardBytes = Index{1} << 19;
constexpr Index kBackwardBytes = 2 * kForwardBytes;
constexpr Index kWeightBytes = kForwardBytes / 4;
// Weights of a run: their gradients are final together, so about a bucket.
constexpr Index kRunWeightBytes = Index{1} << 20;

enum class RunPosition { kAnywhere, kFirst, kAlone };

Index weight_bytes(const ModelOp& op) {
  return op.params.size() * Index{sizeof(Scalar)};
}

Index sample_bytes(const ModelOp& op) {
  Index scalars = op.out.size();
  for (const Shape& in : op.in) scalars += in.size();
  return scalars * Index{sizeof(Scalar)};
}

RunPosition position_of(const ModelOp& op, RunPosition with_statistics) {
  if (op.shares || op.layer->split() != nullptr || weight_bytes(op) > kWeightBytes)
    return RunPosition::kAlone;
  return op.layer->statistics() != nullptr ? with_statistics : RunPosition::kAnywhere;
}

// Pieces of the order of ops.
std::vector<OpRun> cut(const Model& model, Index block_bytes, RunPosition with_statistics) {
  std::vector<OpRun> runs;
  bool open = false;
  Index bytes = 0;
  Index weights = 0;
  for (Index i = 0; i < std::ssize(model.ops()); ++i) {
    const ModelOp& op = model.op(i);
    const RunPosition here = position_of(op, with_statistics);
    if (!open || here != RunPosition::kAnywhere || weights + weight_bytes(op) > kRunWeightBytes) {
      runs.push_back({.ops = {i, i}});
      bytes = 0;
      weights = 0;
    }
    open = here != RunPosition::kAlone;
    bytes = std::max(bytes, sample_bytes(op));
    weights += weight_bytes(op);
    runs.back().ops.end = i + 1;
    runs.back().rows = open ? std::max<Index>(block_bytes / bytes, 1) : 0;
  }
  return runs;
}

// A stage takes the blocks of the whole model, so that its sums over samples are the same. What it receives
// passes in the blocks of the op before it: an op with statistics behind adds what it sees in these.
std::vector<OpRun> cut_stage(const Model& model, Index block_bytes, RunPosition with_statistics) {
  std::vector<OpRun> whole = cut(model.whole(), block_bytes, with_statistics);
  if (!model.is_stage()) return whole;
  std::vector<OpRun> runs;
  const Index shift = model.received().end - model.stage().begin;
  for (const OpRun& run : whole) {
    if (run.ops.contains(model.stage().begin - 1))
      runs.push_back({.ops = model.received(), .rows = run.rows});
    const Range here = intersect(run.ops, model.stage());
    if (!here.empty()) runs.push_back({.ops = {here.begin + shift, here.end + shift}, .rows = run.rows});
  }
  return runs;
}

}  // namespace

ActivationMemory activation_memory(const Model& model, Index batch, ActivationRetention kept) {
  const std::vector<OpRun> forward = forward_runs(model);
  const std::vector<OpRun> backward = backward_runs(model);
  const std::vector<Users> users = users_of(model);
  const bool trains = kept == ActivationRetention::kForTraining;
  const bool shares = trains || kept == ActivationRetention::kForEvaluation;
  const Index always = std::max(std::ssize(forward), std::ssize(backward)) + 2;
  const auto passes_border = [&](Index op) {
    const auto is_owner = [&](Index sent) { return at(model.output_owners(), sent) == op; };
    return model.op(op).received || std::ranges::any_of(model.sent(), is_owner);
  };
  ActivationMemory memory{.samples = std::vector<RetainedSamples>(users.size())};
  std::vector<Lifetime> outputs;
  std::vector<Lifetime> gradients;
  for (Index i = 0; i < std::ssize(users); ++i) {
    const auto& [ops, reads_back] = at(users, i);
    RetainedSamples& samples = at(memory.samples, i);
    if (!model.owns_output(i) || model.op(i).only_reshapes) continue;
    const bool whole = !shares || (trains && reads_back);
    samples.output = whole ? batch : samples_at_once(forward, ops, batch);
    if (trains) samples.gradient = samples_at_once(backward, ops, batch);
    if (kept == ActivationRetention::kAll) samples.gradient = batch;
    // Messages from and to other stages may be on their way before and after the pass.
    const bool stays = !shares || passes_border(i);
    const Range there = runs_of(forward, ops);
    const Range back = runs_of(backward, ops);
    const Index size = model.op(i).out.size();
    const Range forth{stays ? -always : there.begin, stays || whole ? always : there.end};
    outputs.push_back({i, samples.output * size, forth});
    gradients.push_back(
        {i, samples.gradient * size, stays ? Range{-always, always} : Range{-back.end, -back.begin}});
  }
  memory.outputs = share_memory(std::ssize(users), std::move(outputs));
  memory.gradients = share_memory(std::ssize(users), std::move(gradients));
  return memory;
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
  const ActivationMemory memory = activation_memory(model, batch, kept);
  Index scalars = memory.outputs.size + memory.gradients.size;
  if (kept == ActivationRetention::kForTraining) scalars += tied_gradient_size(model);
  for (const ModelOp& op : model.ops()) {
    if (!op.only_reshapes) scalars += batch * op.cache_size;
  }
  return scalars * Index{sizeof(Scalar)};
}

std::vector<OpRun> forward_runs(const Model& model) {
  return cut_stage(model, kForwardBytes, RunPosition::kFirst);
}

std::vector<OpRun> backward_runs(const Model& model) {
  return cut_stage(model, kBackwardBytes, RunPosition::kAlone);
}

Index backward_rows_behind(const Model& model) {
  for (const OpRun& run : cut(model.whole(), kBackwardBytes, RunPosition::kAlone)) {
    if (run.ops.contains(model.stage().end)) return run.rows;
  }
  return 0;
}

}  // namespace lockstep
