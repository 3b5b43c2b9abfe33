// PyTorch's models with their weights: outputs, gradients, running moments, evaluation, and a training.
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/optim/schedule.h"
#include "support/config_text.h"
#include "support/torch_references.h"

namespace lockstep::torch_layers_test {

using Json = nlohmann::json;

std::vector<Scalar> scalars(const Json& values) {
  return values.get<std::vector<Scalar>>();
}

WindowScaling scaling_of(const Json& reference) {
  if (!reference.contains("window_scaling")) return {};
  const Json& scaling = reference.at("window_scaling");
  return {.kind = scaling.at(0) == "last" ? WindowScaling::Kind::kLast : WindowScaling::Kind::kStandard,
          .labels = scaling.at(1),
          .window = scaling.at(2)};
}

// With lengths a batch of sequences.
Shape shape_of(const Json& reference) {
  return {.dims = reference.at("input").get<std::vector<Index>>(), .sequence = reference.contains("lengths")};
}

// A model of a case, with its weights.
class Reference {
 public:
  explicit Reference(const Json& reference)
      : rows_(reference.at("rows")),
        model_({.layers = reference.at("layers"), .window_scaling = scaling_of(reference)},
               shape_of(reference)),
        workspace_(model_, rows_, ActivationRetention::kForTraining),
        weights_(model_.layout().size),
        state_(model_.state_layout().size),
        gradient_(model_.layout().size),
        lengths_(scalars(reference.value("lengths", Json::array()))) {
    initialise({&model_.state_layout(), state_.span()}, 1, 1.0);
    const Json& weights = reference.at("weights");
    EXPECT_EQ(weights.size(), model_.layout().params.size());
    for (const ParamInfo& param : model_.layout().params) {
      const std::vector<Scalar> values = scalars(weights.at(param.name));
      EXPECT_EQ(std::ssize(values), param.range.size()) << param.name;
      std::ranges::copy(values, part(weights_.span(), param.range).begin());
    }
  }

  std::span<const Scalar> forward(const std::vector<Scalar>& x, bool training) {
    x_ = x;
    const ConstMatrix y = workspace_.forward({.values = {.weights = weights_.span(), .state = state_.span()},
                                              .x = ConstMatrix(x_.data(), rows_, model_.input().size()),
                                              .batch = {.training = training, .lengths = lengths_}});
    y_.assign(y.data(), y.data() + y.size());
    clear_padding();
    return y_;
  }

  void backward(const std::vector<Scalar>& output_gradient) {
    std::ranges::copy(output_gradient, workspace_.output_gradient().data());
    workspace_.backward(gradient_.span(), Write::kReplace, {});
  }

  void move_running_moments() {
    for (Index i = 0; i < std::ssize(model_.ops()); ++i) {
      const BatchStatistics* statistics = model_.op(i).layer->statistics();
      if (statistics == nullptr) continue;
      statistics->update_state(workspace_.sums(i).forward, state_.span(), BatchStatistics::Update::kMove,
                               state_.span());
    }
  }
  void expect_gradient(const Json& expected) const { expect_tensors(model_.layout(), gradient_, expected); }
  void expect_running(const Json& expected) const { expect_tensors(model_.state_layout(), state_, expected); }

 private:
  // Nothing is known of the padding of outputs.
  void clear_padding() {
    if (lengths_.empty() || !model_.output().sequence) return;
    const Index size = model_.output().size();
    for (Index row = 0; row < rows_; ++row) {
      const Index counted = at(model_.ops().back().lengths_out, static_cast<Index>(at(lengths_, row)));
      const Range padding{row * size + counted * model_.output().dims[1], (row + 1) * size};
      std::ranges::fill(part(std::span<Scalar>(y_), padding), Scalar{0});
    }
  }

  static void expect_tensors(const Layout& layout, const AlignedBuffer<Scalar>& values,
                             const Json& expected) {
    EXPECT_EQ(layout.params.size(), expected.size());
    for (const ParamInfo& param : layout.params) {
      SCOPED_TRACE(param.name);
      test::expect_close(part(values.span(), param.range), expected.at(param.name), 2e-6);
    }
  }
  Index rows_;
  Model model_;
  Workspace workspace_;
  AlignedBuffer<Scalar> weights_, state_, gradient_;
  std::vector<Scalar> lengths_, x_, y_;
};

TEST(TorchLayers, OutputsGradientsAndMomentsAgree) {
  for (const Json& expected : test::torch_references("layers", "torch_layers.json")) {
    SCOPED_TRACE(expected.at("layers").get<std::string>());
    Reference reference(expected);
    std::span<const Scalar> outputs;
    for (const Json& batch : expected.at("batches")) {
      outputs = reference.forward(scalars(batch), true);
      reference.backward(scalars(expected.at("output_gradient")));
      reference.move_running_moments();
    }
    test::expect_close(outputs, expected.at("outputs"), 1e-6);
    reference.expect_gradient(expected.at("gradient"));
    reference.expect_running(expected.value("running", Json::object()));
    if (!expected.contains("evaluation")) continue;
    const std::vector<Scalar> last = scalars(expected.at("batches").back());
    test::expect_close(reference.forward(last, false), expected.at("evaluation"), 1e-6);
  }
}

// Losses, and weights after 20 steps.
TEST(TorchLayers, AGptTrainsAsInPyTorch) {
  for (const Json& expected : test::torch_references("training", "torch_layers.json")) {
    const Index rows = expected.at("rows"), positions = expected.at("positions");
    const Config config = test::train_config(expected.at("options"));
    const Model model({.layers = expected.at("layers")},
                      SequenceShape{.positions = positions, .channels = 1}.shape());
    AlignedBuffer<Scalar> weights(model.layout().size), gradient(model.layout().size);
    for (const ParamInfo& param : model.layout().params)
      std::ranges::copy(scalars(expected.at("weights").at(param.name)),
                        part(weights.span(), param.range).begin());
    const std::vector<Scalar> text = scalars(expected.at("text"));
    std::vector<Scalar> ids, next;
    for (Index i = 0; i < rows * (positions + 1); ++i) {
      if (i % (positions + 1) < positions) ids.push_back(at(text, i));
      if (i % (positions + 1) > 0) next.push_back(at(text, i));
    }
    const auto loss =
        over_positions(find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({}), model.output());
    const auto optimizer =
        find_entry(optimizer_catalog(), "optimizer", config.optimizer.optimizer).make(config.optimizer);
    ParameterUpdate update(model.layout(), *optimizer, update_rules(model, config.optimizer));
    const std::vector<double> losses = expected.at("losses");
    const Schedule schedule(config.schedule, {.steps = std::ssize(losses), .samples = std::ssize(losses)},
                            rows);
    Workspace workspace(model, rows, ActivationRetention::kForTraining);
    for (Index step = 0; step < std::ssize(losses); ++step) {
      const ConstMatrix y = workspace.forward({.values = {.weights = weights.span(), .state = {}},
                                               .x = ConstMatrix(ids.data(), rows, positions),
                                               .batch = {.training = true}});
      Matrix dy = workspace.output_gradient();
      const double sum = loss->evaluate(y, ConstMatrix(next.data(), rows, positions), &dy);
      EXPECT_NEAR(sum / static_cast<double>(rows), at(losses, step), 1e-5) << step;
      workspace.backward(gradient.span(), Write::kReplace, {});
      ASSERT_TRUE(update.good(gradient.span(), static_cast<double>(rows)));
      update.step(weights.span(), gradient.span(),
                  {.step = step + 1,
                   .weight = static_cast<double>(rows),
                   .lr = schedule.lr({.steps = step, .samples = step})});
    }
    for (const ParamInfo& param : model.layout().params) {
      SCOPED_TRACE(param.name);
      test::expect_close(part(weights.span(), param.range), expected.at("trained").at(param.name), 1e-5);
    }
  }
}

}  // namespace lockstep::torch_layers_test
