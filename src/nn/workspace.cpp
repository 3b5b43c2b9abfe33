// A workspace takes a batch through the ops of a model, forward and backward. Words: a *run* is a sequence of
// ops that work on one block of samples before the next block begins, so that activations stay in a cache
// (activations.cpp). A buffer that only one run uses holds one block; any other holds the batch.
//
// Forward computes each op of a run on a block. If the op behind the run has statistics, its sums are added
// block by block, since it needs those of all samples before it starts: its `own_forward` sums. What the op
// uses is `forward`: at a sync point the caller fills it with sums over replicas, elsewhere it is a copy.
//
// Backward goes through the runs in reverse. An op's gradient of its input is written, not added, by the
// first op that reaches it; every other op that reads the same output gets a scratch buffer, which is added
// afterwards (plan_gradients). Weight gradients are summed over blocks in the arena, and are ready with the
// last block; `on_ready` then reports the offset from which on all are ready. The gradient by the weight that
// an op shares is computed on its own and added to the range of the owner, which is zeroed first. So the sum
// is the same where the owner is in another stage of the model, on another rank, and gets that gradient from
// here.
#include "lockstep/nn/workspace.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include "lockstep/base/trace.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

// Adds the sums of a block to those of the samples before it, if there are any.
void accumulate(std::span<const double> block, Range rows, std::span<double> sums) {
  if (rows.begin == 0) std::ranges::fill(sums, 0.0);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += block[i];
}

// The rows of a block: a buffer of a single block holds the current one, at its start.
Scalar* rows_in(Scalar* memory, Index kept, Range rows, Index size) {
  return memory + (rows.begin < kept ? rows.begin * size : 0);
}

}  // namespace

Workspace::Workspace(const Model& model, Index max_rows, ActivationRetention kept,
                     const std::vector<Index>& sync_points)
    : model_(model),
      forward_runs_(forward_runs(model)),
      backward_runs_(backward_runs(model)),
      rows_behind_(backward_rows_behind(model)),
      buffers_(model.ops().size()),
      sums_(model.ops().size()) {
  const bool for_training = kept != ActivationRetention::kForEvaluation;
  const ActivationMemory memory = activation_memory(model, max_rows, kept);
  outputs_ = AlignedBuffer<Scalar>(memory.outputs.size);
  gradients_ = AlignedBuffer<Scalar>(memory.gradients.size);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const ModelOp& op = model.ops()[i];
    OpBuffers& own = buffers_[i];
    if (op.only_reshapes) continue;
    own.cache = AlignedBuffer<Scalar>(max_rows * op.cache_size);
    own.kept = memory.samples[i];
    own.output = own.kept.output > 0 ? outputs_.data() + memory.outputs.begin[i] : nullptr;
    own.gradient = own.kept.gradient > 0 ? gradients_.data() + memory.gradients.begin[i] : nullptr;
    if (const BatchStatistics* statistics = op.layer->statistics(); statistics != nullptr && for_training) {
      const auto forward = static_cast<std::size_t>(statistics->forward_count());
      const auto backward = static_cast<std::size_t>(statistics->backward_count());
      sums_[i] = {std::vector<double>(forward), std::vector<double>(forward), std::vector<double>(backward),
                  std::vector<double>(backward)};
      block_sums_.resize(std::max({block_sums_.size(), forward, backward}));
    }
  }
  for (const Index op : sync_points) {
    at(buffers_, op).syncs = true;
    at(buffers_, op).computed_outside = model.op(op).layer->split();
  }
  if (!for_training || kept == ActivationRetention::kOutputs) return;
  plan_gradients(max_rows);
  tied_ = AlignedBuffer<Scalar>(tied_gradient_size(model));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const std::optional<Tie>& tie = model.ops()[i].tie;
    if (tie && model.has_owner(*tie)) buffers_[i].tied_gradient = part(tied_.span(), {0, tie->weight.size()});
  }
}

// The first op in the backward pass writes the gradient of what it took; the others get buffers of their own,
// which is added. An op that works in place is the only user of its input.
void Workspace::plan_gradients(Index max_rows) {
  std::vector<bool> written(buffers_.size(), false);
  Index scratch_size = 0;
  for (const Index number : model_.sent()) at(written, owner_of(number)) = true;  // by the stage behind
  for (auto run = backward_runs_.rbegin(); run != backward_runs_.rend(); ++run) {
    const Index rows = run->rows_of(max_rows);
    for (Index i = run->ops.end - 1; i >= run->ops.begin; --i) {
      const ModelOp& op = model_.op(i);
      if (!op.works()) continue;
      std::vector<std::optional<Index>>& scratch = at(buffers_, i).scratch;
      scratch.resize(op.inputs.size());
      Index size = 0;
      if (!model_.owns_output(i)) continue;
      for (std::size_t j = 0; j < op.inputs.size(); ++j) {
        const Index owner = owner_of(op.inputs[j]);
        if (owner == kModelInput) continue;
        if (at(written, owner)) {
          scratch[j] = size;
          size += round_up(rows * op.in[j].size(), kAlignment);
        }
        at(written, owner) = true;
      }
      scratch_size = std::max(scratch_size, size);
    }
  }
  scratch_ = AlignedBuffer<Scalar>(scratch_size);
}

void Workspace::begin(const Pass& pass) {
  rows_ = pass.x.rows();
  x_ = pass.x.data();
  values_ = pass.values;
  batch_ = pass.batch;
  factors_ = pass.factors;
  look_.begin(rows_, pass.limit);
  measure_forward(0, {0, rows_});
}

ConstMatrix Workspace::forward(const Pass& pass) {
  begin(pass);
  forward({0, std::ssize(buffers_)});
  return outputs();
}

Scalar* Workspace::output_of(Index op, Range rows) {
  const Index owner = owner_of(op);
  if (owner == kModelInput) return nullptr;
  OpBuffers& own = at(buffers_, owner);
  return rows_in(own.output, own.kept.output, rows, model_.op(owner).out.size());
}

Scalar* Workspace::gradient_of(Index op, Range rows) {
  const Index owner = owner_of(op);
  if (owner == kModelInput) return nullptr;
  OpBuffers& own = at(buffers_, owner);
  return rows_in(own.gradient, own.kept.gradient, rows, model_.op(owner).out.size());
}

ConstMatrix Workspace::output_of_op(Index op) const {
  const Index owner = owner_of(op);
  const Scalar* y = owner == kModelInput ? x_ : at(buffers_, owner).output;
  return {y, rows_, model_.op(op).out.size()};
}

// At least once, so that an op hears of a batch without samples.
template <class Run>
void Workspace::in_blocks(Index rows_at_once, const Run& run) const {
  const Index size = rows_at_once > 0 ? rows_at_once : std::max<Index>(rows_, 1);
  Index begin = 0;
  do {
    run(Range{begin, std::min(begin + size, rows_)});
    begin += size;
  } while (begin < rows_);
}

void Workspace::gather_inputs(const ModelOp& op, Range rows, bool with_data) {
  inputs_.clear();
  for (std::size_t j = 0; j < op.inputs.size(); ++j) {
    const Index size = op.in[j].size();
    const Scalar* output = output_of(op.inputs[j], rows);
    const Scalar* data = output == nullptr ? x_ + rows.begin * size : output;
    inputs_.emplace_back(with_data ? data : nullptr, rows.size(), size);
  }
}

void Workspace::measure_forward(Index number, Range rows) {
  if (number == std::ssize(buffers_) || !batch_.training) return;
  const ModelOp& op = model_.op(number);
  if (op.layer->statistics() == nullptr) return;
  std::vector<double>& sums = at(sums_, number).own_forward;
  const std::span<double> block = std::span(block_sums_).first(sums.size());
  gather_inputs(op, rows, true);
  op.layer->statistics()->forward_sums(inputs_.front(), lengths_of(op, rows), values_.state, block);
  accumulate(block, rows, sums);
}

void Workspace::forward(Range ops) {
  for (const OpRun& run : forward_runs_) {
    const Range here = intersect(run.ops, ops);
    if (here.empty()) continue;
    OpSums& sums = at(sums_, here.begin);
    if (!at(buffers_, here.begin).syncs) std::ranges::copy(sums.own_forward, sums.forward.begin());
    in_blocks(run.rows, [&](Range rows) {
      for (Index i = here.begin; i < here.end; ++i) {
        if (model_.op(i).works()) run_forward(i, rows);
      }
      measure_forward(here.end, rows);
    });
  }
}

// The arguments of an op whose inputs are gathered.
PassArgs Workspace::pass_args(Index number, Range rows) const {
  const ModelOp& op = model_.op(number);
  return {.inputs = inputs_,
          .weights = values_.weights,
          .rounded = values_.rounded,
          .tied = tied_weight(op, values_),
          .version = values_.version,
          .state = values_.state,
          .sums = batch_.training ? std::span<const double>(at(sums_, number).forward)
                                  : std::span<const double>(),
          .lengths = lengths_of(op, rows)};
}

Lengths Workspace::lengths_of(const ModelOp& op, Range rows) const {
  if (batch_.lengths.empty() || op.lengths_in.empty()) return {};
  return {part(batch_.lengths, rows), op.lengths_in};
}

std::span<Scalar> Workspace::cache_of(Index number, Range rows) {
  const Index cached = model_.op(number).cache_size;
  return part(at(buffers_, number).cache.span(), {rows.begin * cached, rows.end * cached});
}

void Workspace::run_forward(Index number, Range rows) {
  if (at(buffers_, number).computed_outside != nullptr) return;
  const TraceSpan span(TraceKind::kForward, model_.number_in_whole(number));
  const ModelOp& op = model_.op(number);
  gather_inputs(op, rows, true);
  Matrix y(output_of(number, rows), rows.size(), op.out.size());
  BatchContext batch = batch_;
  batch.first_row += rows.begin;
  if (!batch.lengths.empty()) batch.lengths = part(batch.lengths, rows);
  op.layer->forward({pass_args(number, rows), cache_of(number, rows), batch, y});
}

ConstMatrix Workspace::input(Index op) const {
  const Index input = model_.op(op).inputs.front();
  return input == kModelInput ? ConstMatrix(x_, rows_, model_.input().size()) : output_of_op(input);
}

Matrix Workspace::input_gradient(Index op) {
  const ModelOp& of = model_.op(op);
  return {input_gradient_of(of, at(buffers_, op), 0, {0, rows_}), rows_, of.in.front().size()};
}

// A scratch buffer is added to the gradient behind the op.
Scalar* Workspace::input_gradient_of(const ModelOp& op, OpBuffers& own, std::size_t input, Range rows) {
  const std::optional<Index> scratch = own.scratch[input];
  return scratch ? scratch_.data() + *scratch : gradient_of(op.inputs[input], rows);
}

void Workspace::backward(std::span<Scalar> gradient, Write write, const GradientReadyCallback& on_ready) {
  begin_backward(gradient, write);
  backward({0, std::ssize(buffers_)}, gradient, write, on_ready);
}

// All ops that share a tensor add to its gradient, so it starts from zero.
void Workspace::begin_backward(std::span<Scalar> gradient, Write write) {
  for (const ModelOp& op : model_.ops()) {
    if (write == Write::kReplace && op.lends()) std::ranges::fill(part(gradient, op.params), Scalar{0});
  }
  ready_from_ = std::ssize(gradient);
  in_blocks(rows_behind_, [&](Range rows) { measure_backward(trained_op(), rows); });
}

void Workspace::backward(Range ops, std::span<Scalar> gradient, Write write,
                         const GradientReadyCallback& on_ready) {
  ops.end = std::min(ops.end, trained_op() + 1);
  // Gradients of a tied tensor are ready only when its owner's are: announcements outside own_ are ignored.
  const auto announce = [&](Index from) {
    if (own_.contains(from)) ready_from_ = from;
    if (on_ready) on_ready(ready_from_);
  };
  const GradientReadyCallback on_ready_here = std::cref(announce);
  for (auto run = backward_runs_.rbegin(); run != backward_runs_.rend(); ++run) {
    const Range here = intersect(run->ops, ops);
    if (here.empty()) continue;
    OpSums& sums = at(sums_, here.begin);
    if (!at(buffers_, here.begin).syncs) std::ranges::copy(sums.own_backward, sums.backward.begin());
    in_blocks(run->rows, [&](Range rows) {
      for (Index i = here.end - 1; i >= here.begin; --i) {
        if (!model_.op(i).works()) continue;
        own_ = rows.end == rows_ ? model_.op(i).params : Range{};  // ready with the last block
        run_backward(i, rows, gradient, rows.begin == 0 ? write : Write::kAdd, on_ready_here);
        if (!own_.empty()) on_ready_here(own_.begin);
      }
      measure_backward(here.begin - 1, rows);
    });
  }
}

void Workspace::measure_backward(Index number, Range rows) {
  if (number < 0) return;
  const ModelOp& op = model_.op(number);
  if (op.layer->statistics() == nullptr) return;
  OpSums& own = sums(number);
  const std::span<double> block = std::span(block_sums_).first(own.own_backward.size());
  gather_inputs(op, rows, true);
  const ConstMatrix dy(gradient_of(number, rows), rows.size(), op.out.size());
  op.layer->statistics()->backward_sums({.x = inputs_.front(),
                                         .dy = dy,
                                         .lengths = lengths_of(op, rows),
                                         .state = values_.state,
                                         .sums = own.forward},
                                        block);
  accumulate(block, rows, own.own_backward);
}

// Finds the memory for the gradients of the inputs of an op.
void Workspace::gather_input_gradients(const ModelOp& op, OpBuffers& own, Range rows) {
  dinputs_.clear();
  wanted_dinputs_.clear();
  dinputs_.reserve(op.inputs.size());
  for (std::size_t j = 0; j < op.inputs.size(); ++j) {
    Scalar* const written = input_gradient_of(op, own, j, rows);
    dinputs_.emplace_back(written, rows.size(), op.in[j].size());
    wanted_dinputs_.push_back(written == nullptr ? nullptr : &dinputs_.back());
  }
}

void Workspace::run_backward(Index number, Range rows, std::span<Scalar> gradient, Write write,
                             const GradientReadyCallback& on_ready) {
  const TraceSpan span(TraceKind::kBackward, model_.number_in_whole(number));
  const ModelOp& op = model_.op(number);
  OpBuffers& own = at(buffers_, number);
  gather_inputs(op, rows, op.reads_input);
  gather_input_gradients(op, own, rows);
  if (op.lends()) write = Write::kAdd;
  const Scalar* output = op.reads_output ? output_of(number, rows) : nullptr;
  const ConstMatrix y(output, rows.size(), op.out.size());
  const ConstMatrix dy(gradient_of(number, rows), rows.size(), op.out.size());
  FactorBuffers factors;
  if (!factors_.empty()) factors = at(factors_, number).from_row(rows.begin, op.in.front().size());
  const Range checked = look_.check_factors(op, inputs_.front(), dy, factors.x != nullptr);
  if (own.computed_outside != nullptr) {
    own.computed_outside->backward_bias(dy, gradient, write);
  } else {
    const OpSums& sums = at(sums_, number);
    op.layer->backward({pass_args(number, rows), y, dy, sums.own_backward, sums.backward,
                        cache_of(number, rows), wanted_dinputs_, gradient, write, own.tied_gradient,
                        factors.x == nullptr ? nullptr : &factors, on_ready});
  }
  if (op.tie && model_.has_owner(*op.tie)) add(part(gradient, op.tie->weight), own.tied_gradient);
  if (rows.end == rows_) look_.check_sums(op, checked, gradient);
  for (std::size_t j = 0; j < op.inputs.size(); ++j) {
    if (!own.scratch[j]) continue;
    const auto count = static_cast<std::size_t>(rows.size() * op.in[j].size());
    add({gradient_of(op.inputs[j], rows), count}, {scratch_.data() + *own.scratch[j], count});
  }
}

std::optional<Index> Workspace::first_bad_op() const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].output == nullptr) continue;
    assert(buffers_[i].kept.output >= rows_);
    const auto used = static_cast<std::size_t>(rows_ * model_.ops()[i].out.size());
    if (!all_finite({buffers_[i].output, used})) return static_cast<Index>(i);
  }
  return std::nullopt;
}

void GradientCheck::begin(Index rows, const std::optional<GradientLimit>& limit) {
  rows_ = rows;
  limit_ = limit;
  good_ = true;
}

// Small factors have a small product. That of others, which no sound training has, is looked at itself.
Range GradientCheck::check_factors(const ModelOp& op, const ConstMatrix& x, const ConstMatrix& dy,
                                   bool factored) {
  if (!limit_) return {};
  const Range tensor = op.shares ? Range{} : op.weight_use.factored;
  const bool less_to_read = dy.rows() == rows_ && x.size() + dy.size() < tensor.size();
  if (!factored && !less_to_read) return {};
  const Scalar of_sample = limit_->most / static_cast<Scalar>(limit_->samples);
  const Scalar small = std::sqrt(of_sample);
  if (all_within(dy.values(), small) && all_within(x.values(), small)) return tensor;
  if (!factored) return {};
  const RowMajorMatrix product = as_eigen(dy).transpose() * as_eigen(x);
  good_ = good_ && all_within(ConstMatrix(product.data(), product.rows(), product.cols()).values(),
                              static_cast<Scalar>(dy.rows()) * of_sample);
  return tensor;
}

void GradientCheck::check_sums(const ModelOp& op, Range checked, std::span<const Scalar> gradient) {
  if (!limit_ || !limit_->complete) return;
  if (checked.empty()) checked = {op.params.begin, op.params.begin};
  for (const Range rest : {Range{op.params.begin, checked.begin}, Range{checked.end, op.params.end}}) {
    good_ = good_ && all_within(part(gradient, rest), limit_->most);
  }
}

}  // namespace lockstep
