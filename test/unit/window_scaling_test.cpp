// The ops around the layers of a model of time windows.
#include "lockstep/base/errors.h"
#include "lockstep/nn/workspace.h"
#include "nn/model_builder.h"
#include "support/error_text.h"
#include "support/seed.h"

namespace lockstep::test::window_scaling_test {

using Kind = WindowScaling::Kind;
using Values = std::vector<Scalar>;

// Layers that give what they take: a dense layer with ones on its diagonal.
Values outputs_of_identity(const WindowScaling& scaling, const Values& x) {
  const Index size = std::ssize(x);
  const Model model({.layers = "dense(" + std::to_string(size) + ")", .window_scaling = scaling}, {{size}});
  AlignedBuffer<Scalar> weights(model.layout().size);
  for (Index i = 0; i < size; ++i) weights.data()[i * size + i] = 1;
  Workspace workspace(model, 1, ActivationRetention::kAll);
  workspace.forward(
      {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(x.data(), 1, size), .batch = {}});
  const std::span<const Scalar> scaled = workspace.output(0).values();
  const std::span<const Scalar> outputs = workspace.outputs().values();
  Values both(scaled.begin(), scaled.end());
  both.insert(both.end(), outputs.begin(), outputs.end());
  return both;
}

// Past: 1 2 3 and 4 4 10; behind them two numbers more. Three outputs and one more for each label.
TEST(WindowScaling, SubtractsTheLastValueAndAddsItToTheOutputsOfTheLabel) {
  EXPECT_EQ(outputs_of_identity({Kind::kLast, 2, 3}, {1, 2, 3, 4, 4, 10, 7, 8}),
            (Values{-2, -1, 0, -6, -6, 0, 7, 8, 1, 2, 3, -3, 4, 10, 17, 18}));
}

TEST(WindowScaling, DividesByTheDeviationOfThePast) {
  const Values found = outputs_of_identity({Kind::kStandard, 2, 3}, Values{1, 2, 3, 4, 4, 10, 7, 8});
  const double first = std::sqrt(2.0 / 3 + 1e-5), second = std::sqrt(8.0 + 1e-5);
  const std::vector<double> expected{-1 / first,
                                     0,
                                     1 / first,
                                     -2 / second,
                                     -2 / second,
                                     4 / second,
                                     7,
                                     8,
                                     1,
                                     2,
                                     3,
                                     2 - 2 / second * first,
                                     4,
                                     10,
                                     6 + 7 * second,
                                     6 + 8 * second};
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << i;
}

// A past without any change is zero, and what is far from zero keeps its digits.
TEST(WindowScaling, TakesPastsThatStandStillAndThoseFarFromZero) {
  EXPECT_EQ(outputs_of_identity({Kind::kStandard, 1, 3}, {5, 5, 5}), (Values{0, 0, 0, 5, 5, 5}));
  const Values far =
      outputs_of_identity({Kind::kStandard, 1, 4}, {8'000'000, 8'000'001, 8'000'000, 8'000'001});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(far[i], i % 2 == 0 ? -1 : 1, 1e-4) << i;
}

struct NoTensors final : ParamDeclarer {
  Initialiser default_initialiser() const override { return {}; }
  BatchNormMode default_batch_norm() const override { return {}; }
  Precision precision() const override { return {}; }
  Index number() const override { return 0; }
  Range declare(ParamSpec) override { return {}; }
  Range declare_state(ParamSpec) override { return {}; }
  Range tie(const std::string&, const Shape&) override { return {}; }
};

// An op alone, since a model's input has no gradient; the function is the sum of outputs times factors.
class OpAlone {
 public:
  static constexpr Index kRows = 3;
  OpAlone(std::unique_ptr<Layer> layer, const std::vector<Shape>& in) : layer_(std::move(layer)) {
    NoTensors none;
    outputs_ = layer_->declare(in, none).out.size();
    for (const Shape& shape : in) {
      sizes.push_back(shape.size());
      inputs.push_back(random_values(kRows * shape.size(), sizes.size(), 1));
    }
    factors_ = random_values(kRows * outputs_, 9, 1);
  }

  double value() {
    Values y(factors_.size());
    Matrix output(y.data(), kRows, outputs_);
    const std::vector<ConstMatrix> x = views();
    const BatchContext batch{};
    layer_->forward({pass(x), {}, batch, output});
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += double{y[i]} * double{factors_[i]};
    return sum;
  }

  // By each input.
  std::vector<Values> gradients() {
    std::vector<Values> values;
    for (const Values& input : inputs) values.emplace_back(input.size(), std::nanf(""));
    std::vector<Matrix> matrices;
    for (std::size_t i = 0; i < values.size(); ++i) matrices.emplace_back(values[i].data(), kRows, sizes[i]);
    std::vector<Matrix*> wanted;
    for (Matrix& matrix : matrices) wanted.push_back(&matrix);
    const std::vector<ConstMatrix> x = views();
    const ConstMatrix none(nullptr, kRows, outputs_), dy(factors_.data(), kRows, outputs_);
    layer_->backward({pass(x), none, dy, {}, {}, {}, wanted, {}, Write::kReplace, {}, nullptr, {}});
    return values;
  }
  std::vector<Index> sizes;
  std::vector<Values> inputs;

 private:
  std::vector<ConstMatrix> views() const {
    std::vector<ConstMatrix> views;
    for (std::size_t i = 0; i < inputs.size(); ++i) views.emplace_back(inputs[i].data(), kRows, sizes[i]);
    return views;
  }
  static PassArgs pass(const std::vector<ConstMatrix>& x) {
    return {.inputs = x,
            .weights = {},
            .rounded = {},
            .tied = {},
            .version = 0,
            .state = {},
            .sums = {},
            .lengths = {}};
  }
  std::unique_ptr<Layer> layer_;
  Index outputs_ = 0;
  Values factors_;
};

void expect_gradients(OpAlone op) {
  const std::vector<Values> found = op.gradients();
  for (std::size_t input = 0; input < found.size(); ++input)
    for (std::size_t i = 0; i < found[input].size(); ++i) {
      Scalar& x = op.inputs[input][i];
      const Scalar kept = x;
      x = kept + Scalar{4e-3F};
      const double above = op.value();
      const Scalar upper = x;
      x = kept - Scalar{4e-3F};
      const double slope = (above - op.value()) / (double{upper} - double{x});
      x = kept;
      EXPECT_NEAR(found[input][i], slope, 1e-2 * std::max(1.0, std::abs(slope))) << input << " " << i;
    }
}

TEST(WindowScaling, GradientsByAllInputsEqualFiniteDifferences) {
  for (const Kind kind : {Kind::kLast, Kind::kStandard}) {
    const WindowScaling scaling{kind, 2, 5};
    expect_gradients({scale_windows(scaling), {{{12}}}});
    expect_gradients({unscale_windows(scaling, 1), {{{6}}, {{12}}}});
    expect_gradients({unscale_windows(scaling, 3), {{{3, 4}}, {{12}}}});
  }
}

TEST(WindowScaling, EachMemberOfAnEnsembleForecasts) {
  const ModelOptions options{.layers = "tabm(3) tabm_heads(4)", .window_scaling = {Kind::kLast, 2, 3}};
  const Model model(options, {{6}});
  EXPECT_EQ(model.members(), 3);
  EXPECT_EQ(model.output(), (Shape{{4}}));
  const AlignedBuffer<Scalar> weights(model.layout().size);
  const Values x{1, 2, 3, 4, 5, 60};
  Workspace workspace(model, 1, ActivationRetention::kForTraining);
  const ConstMatrix y = workspace.forward(
      {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(x.data(), 1, 6), .batch = {}});
  EXPECT_TRUE(std::ranges::equal(y.values(), Values{3, 3, 60, 60}));
  EXPECT_TRUE(std::ranges::equal(workspace.trained_outputs().values(),
                                 Values{3, 3, 60, 60, 3, 3, 60, 60, 3, 3, 60, 60}));
}

TEST(WindowScaling, LeavesNamesAndWeightsOfTheLayersAsTheyAre) {
  const std::string layers = "dense(4) tanh dense(6)";
  const Model plain({.layers = layers}, {{12}});
  const Model scaled({.layers = layers, .window_scaling = {Kind::kStandard, 3, 4}}, {{12}});
  ASSERT_EQ(scaled.layout().params.size(), plain.layout().params.size());
  for (std::size_t i = 0; i < plain.layout().params.size(); ++i) {
    EXPECT_EQ(scaled.layout().params[i].name, plain.layout().params[i].name);
    EXPECT_EQ(scaled.layout().params[i].range, plain.layout().params[i].range);
  }
  AlignedBuffer<Scalar> of_plain(plain.layout().size), of_scaled(plain.layout().size);
  initialise({&plain.layout(), of_plain.span()}, 1, 1.0);
  initialise({&scaled.layout(), of_scaled.span()}, 1, 1.0);
  EXPECT_TRUE(std::ranges::equal(of_plain.span(), of_scaled.span()));
  EXPECT_EQ(std::tuple(scaled.op(0).name(), scaled.op(0).flops, scaled.ops().back().name()),
            std::tuple("window_scale", 6 * 12, "window_unscale"));
  EXPECT_EQ(scaled.ops().back().flops, 4 * 12 + 2 * 6);
}

TEST(WindowScaling, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const WindowScaling& scaling, const Shape& input) {
    return error_text<ConfigError>([&] { Model({.layers = "dense(4)", .window_scaling = scaling}, input); });
  };
  for (const WindowScaling& large :
       {WindowScaling{Kind::kLast, 3, 4}, WindowScaling{Kind::kLast, 4'000'000'000'000, 4'000'000'000'000}})
    expect_parts(refusal(large, {{11}}), {"layer past 'window_scale' on 11", "the pasts of"});
  expect_parts(refusal({Kind::kStandard, 3, 4}, {{3, 4}}), {"on 3x4", "expected a vector", "3 labels, 4"});
  expect_parts(refusal({Kind::kLast, 0, 4}, {{3}}), {"pasts of 0 labels"});
  expect_parts(refusal({Kind::kLast, 3, 4}, {{12}}),
               {"layer forecast 'window_unscale' on 4 and 12", "4 outputs are not 3 equal parts"});
}

}  // namespace lockstep::test::window_scaling_test
