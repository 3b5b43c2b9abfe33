// Models in bf16 against the same models in fp32.
#include "app/training/resume_state.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "support/seed.h"

namespace lockstep::bf16_layers_test {

constexpr Index kRows = 12;

struct Example {
  std::string text;
  Shape input;
};

std::vector<Example> examples() {
  return {
      {"dense(40)", {{30}}},
      {"dense(40, split=rows) tanh dense(300, split=rows)", {{64}}},
      {"dense(16, bias=false) tanh dense(16) tanh dense(16, tie=2)", {{16}}},
      {"dense(8, shared=3) tanh dense(8, tie=0, shared=3)", {{24}}},
      {"embedding(6, 8) tanh dense(6, tie=0)", {{1}}},
      {"conv2d(8, 3)", {{9, 7, 3}}},
      {"conv2d(6, 3, stride=2, padding=same, groups=2) tanh conv2d(4, 2, padding=1)", {{8, 9, 4}}},
      {"conv2d(6, 3, padding=1, groups=depthwise, bias=false) tanh flatten dense(5)", {{5, 6, 3}}},
      {"residual(conv2d(4, 3, stride=2, padding=1) batch_norm tanh) conv2d(3, 3, dilation=2)", {{14, 14, 4}}},
      {"as_sequence(10) conv1d(6, 3, stride=2, padding=same, groups=2) tanh conv1d(4, 2, padding=causal)",
       {{40}}},
      {"as_sequence(10) dense(12) tanh dense(8) mean_over_time", {{40}}},
      {"dense(8) lstm(12, layers=2, bidirectional=true)", {.dims = {6, 5}, .sequence = true}},
      {"dense(8) gru(12, last=true)", {.dims = {6, 5}, .sequence = true}}};
}

// Outputs and gradient of one pass.
struct Passed {
  std::vector<Scalar> outputs, gradient;
};

Passed pass(const Example& example, Precision precision, int threads = 1) {
  const Model model({.layers = example.text, .init = "xavier", .precision = precision}, example.input);
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  initialise({&model.stored_layout(), stored.span()}, test::seed(), 1.0);
  std::vector<Scalar> x = test::random_values(kRows * model.input().size(), 1);
  if (example.text.starts_with("embedding"))
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Scalar>(i % 6);
  KernelWeights weights(model);
  ThreadTeam team(threads);
  const ModelValues values = weights.prepare(stored_values(model, stored.span()), team);
  EXPECT_EQ(values.rounded.empty(), precision == Precision::kFp32);
  Workspace workspace(model, kRows, ActivationRetention::kForTraining);
  const ConstMatrix outputs = workspace.forward({.values = values,
                                                 .x = ConstMatrix(x.data(), kRows, model.input().size()),
                                                 .batch = {.training = true, .seed = 1}});
  Matrix dy = workspace.output_gradient();
  std::ranges::copy(test::random_values(dy.size(), 2), dy.data());
  AlignedBuffer<Scalar> gradient(model.layout().size);
  workspace.backward(gradient.span(), Write::kReplace, {});
  return {{outputs.data(), outputs.data() + outputs.size()},
          {gradient.data(), gradient.data() + gradient.size()}};
}

double relative_difference(const std::vector<Scalar>& found, const std::vector<Scalar>& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

class Bf16Models : public testing::Test {
 protected:
  void SetUp() override {
    if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << kernel_back_end() << " has no bf16";
  }
};

// An operand is off by at most 2^-9 of itself, 0.2 %.
TEST_F(Bf16Models, DifferFromFp32ByTheRoundingOfOperands) {
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.text);
    const Passed exact = pass(example, Precision::kFp32), found = pass(example, Precision::kBf16);
    EXPECT_LT(relative_difference(found.outputs, exact.outputs), 0.01);
    EXPECT_LT(relative_difference(found.gradient, exact.gradient), 0.01);
    EXPECT_GT(relative_difference(found.outputs, exact.outputs), 1e-4) << "nothing was rounded";
    EXPECT_GT(relative_difference(found.gradient, exact.gradient), 1e-4) << "nothing was rounded";
  }
}

TEST_F(Bf16Models, ThreadsShareTheRounding) {
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.text);
    const Passed alone = pass(example, Precision::kBf16), shared = pass(example, Precision::kBf16, 3);
    EXPECT_EQ(shared.outputs, alone.outputs);
    EXPECT_EQ(shared.gradient, alone.gradient);
  }
}

}  // namespace lockstep::bf16_layers_test
