// The same models with the same weights as PyTorch: outputs, gradients, running moments, evaluation.
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/nn/workspace.h"
#include "support/torch_references.h"

namespace lockstep {
namespace {

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

// A model of a case, with its weights.
class Reference {
 public:
  explicit Reference(const Json& reference)
      : rows_(reference.at("rows")),
        model_({.layers = reference.at("layers"), .window_scaling = scaling_of(reference)},
               {.dims = reference.at("input"), .sequence = reference.value("sequence", false)}),
        lengths_(scalars(reference.value("lengths", Json::array()))),
        workspace_(model_, rows_, ActivationRetention::kForTraining),
        weights_(model_.layout().size),
        state_(model_.state_layout().size),
        gradient_(model_.layout().size) {
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
    return {y.data(), static_cast<std::size_t>(y.size())};
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
  std::vector<Scalar> lengths_;  // of padded sequences
  Workspace workspace_;
  AlignedBuffer<Scalar> weights_;
  AlignedBuffer<Scalar> state_;
  AlignedBuffer<Scalar> gradient_;
  std::vector<Scalar> x_;
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

}  // namespace
}  // namespace lockstep
