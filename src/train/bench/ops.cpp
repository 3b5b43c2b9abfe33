#include "lockstep/base/random.h"
#include "lockstep/nn/kernel_weights.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/bench/bench.h"
#include "timing.h"

namespace lockstep {
namespace {

void fill(std::span<Scalar> values, std::uint64_t seed) {
  RandomStream random({.seed = seed});
  for (Scalar& value : values) value = random.uniform();
}

bool takes_only_input(const ModelOp& op) {
  return std::ranges::all_of(op.inputs, [](Index input) { return input == kModelInput; });
}

// A batch of random samples, once through the model and back.
class RandomBatch {
 public:
  RandomBatch(const Model& model, Index rows)
      : model_(model),
        rows_(rows),
        ops_{0, std::ssize(model.ops())},
        stored_(model.stored_layout().size),
        x_(rows * model.input().size()),
        gradient_(model.layout().size),
        weights_(model),
        workspace_(model, rows, ActivationRetention::kForTraining) {
    initialise({.layout = &model.stored_layout(), .values = stored_.span()}, 1, 0.01);
    fill(x_.span(), 1);
    begin();
    forward(ops_);
    Matrix dy = workspace_.output_gradient();
    fill(dy.values(), 2);
    workspace_.backward(gradient_.span(), Write::kReplace, {});
  }

  // Begins a pass as in a step, with weights that are new to the kernels.
  void begin() {
    workspace_.begin({.values = weights_.prepare(stored_values(model_, stored_.span()), one_thread_),
                      .x = ConstMatrix(x_.data(), rows_, model_.input().size()),
                      .batch = {.training = true, .seed = 1}});
  }
  // Single ops may run on values of other samples: the time does not depend on them.
  void forward(Range ops) { workspace_.forward(ops); }
  void backward(Range ops) {
    if (ops.end == ops_.end) workspace_.begin_backward(gradient_.span(), Write::kReplace);
    workspace_.backward(ops, gradient_.span(), Write::kReplace, {});
  }
  Range all() const { return ops_; }

 private:
  const Model& model_;
  Index rows_;
  Range ops_;
  AlignedBuffer<Scalar> stored_;
  AlignedBuffer<Scalar> x_;
  AlignedBuffer<Scalar> gradient_;
  ThreadTeam one_thread_{1};
  KernelWeights weights_;
  Workspace workspace_;
};

}  // namespace

double measure_pass(Communicator& comm, const Model& model, Index rows) {
  RandomBatch batch(model, rows);
  return median_seconds(comm, [&] {
    batch.begin();
    batch.forward(batch.all());
    batch.backward(batch.all());
  });
}

std::vector<OpRate> measure_ops(Communicator& comm, const Model& model, Index rows) {
  RandomBatch batch(model, rows);
  std::vector<OpRate> rates;
  for (Index i = 0; i < batch.all().end; ++i) {
    const ModelOp& op = model.op(i);
    if (op.layer->only_reshapes()) continue;
    const Index flops = rows * op.layer->flops();
    rates.push_back({.title = op.title,
                     .forward_flops = flops,
                     .backward_flops = takes_only_input(op) ? flops : 2 * flops,
                     .forward_seconds = median_seconds(
                         comm,
                         [&] {
                           batch.forward({i, i + 1});
                         },
                         0.03),
                     .backward_seconds = median_seconds(
                         comm,
                         [&] {
                           batch.backward({i, i + 1});
                         },
                         0.03)});
  }
  return rates;
}

}  // namespace lockstep
