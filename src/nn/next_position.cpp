#include "lockstep/nn/next_position.h"

#include <algorithm>

#include "lockstep/base/errors.h"

namespace lockstep {

bool is_causal(const Model& model) {
  return std::ranges::all_of(model.ops(), [](const ModelOp& op) { return op.kept_size || op.is_causal; });
}

NextPosition::NextPosition(const Model& model, Index samples) : model_(model), samples_(samples) {
  for (const ModelOp& op : model.ops()) {
    error_if(!op.kept_size,
             "{} cannot go on from one position to the next: generating takes layers that see no position "
             "behind their own, such as attention(heads, causal=true)",
             op.title);
    memory_.push_back({.output = AlignedBuffer<Scalar>(samples * op.out.dims.back()),
                       .cache = AlignedBuffer<Scalar>(samples * op.cache_size),
                       .kept = AlignedBuffer<Scalar>(samples * *op.kept_size)});
  }
}

ConstMatrix NextPosition::output_of(Index op, const ConstMatrix& x) const {
  if (op == kModelInput) return x;
  return {at(memory_, op).output.data(), samples_, model_.op(op).out.dims.back()};
}

ConstMatrix NextPosition::next(const ModelValues& values, const ConstMatrix& x) {
  for (Index i = 0; i < std::ssize(memory_); ++i) {
    const ModelOp& op = model_.op(i);
    OpMemory& own = at(memory_, i);
    std::vector<ConstMatrix> inputs;
    for (const Index input : op.inputs) inputs.push_back(output_of(input, x));
    Matrix y(own.output.data(), samples_, op.out.dims.back());
    const PassArgs args{.inputs = inputs,
                        .weights = values.weights,
                        .rounded = values.rounded,
                        .tied = tied_weight(op, values),
                        .version = values.version,
                        .state = values.state,
                        .sums = {},
                        .lengths = {}};
    op.layer->forward_next({args, own.cache.span(), {}, y}, position_, own.kept.span());
  }
  ++position_;
  return output_of(std::ssize(memory_) - 1, x);
}

}  // namespace lockstep
