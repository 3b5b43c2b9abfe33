// What a walk back says of gradients that are final while it goes on: it keeps its word, and speaks in time.
#include "lockstep/nn/workspace.h"
#include "support/common.h"

namespace lockstep::gradients_final_test {

struct Said {
  Index from;
  std::vector<Scalar> gradient;  // from there on, at that moment
};

// Walks back and returns what was said on the way, each place once.
std::vector<Said> walk_back(const Model& model, Index rows, std::vector<Scalar>& gradient) {
  std::vector<Scalar> weights(static_cast<std::size_t>(model.layout().size));
  std::vector<Scalar> x(static_cast<std::size_t>(rows * model.input().size()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<Scalar>(i % 911)) / 30;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<Scalar>(i % 577));
  gradient.assign(weights.size(), -1);
  Workspace workspace(model, rows, ActivationRetention::kForTraining);
  workspace.forward({.values = {.weights = weights, .state = {}},
                     .x = ConstMatrix(x.data(), rows, model.input().size()),
                     .batch = {.training = true}});
  std::ranges::fill(workspace.output_gradient().values(), Scalar{0.25});
  std::vector<Said> said;
  workspace.backward(gradient, Write::kReplace, [&](Index from) {
    if (!said.empty() && said.back().from == from) return;
    said.push_back({from, {gradient.begin() + from, gradient.end()}});
  });
  return said;
}

void expect_true(const std::vector<Said>& said, const std::vector<Scalar>& gradient) {
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.back().from, 0);
  for (std::size_t i = 1; i < said.size(); ++i) EXPECT_LT(said[i].from, said[i - 1].from);
  for (const Said& one : said)
    EXPECT_TRUE(std::equal(one.gradient.begin(), one.gradient.end(), gradient.begin() + one.from))
        << "from " << one.from;
}

// Two layers whose products are cut into pieces, and a shared weight between them.
TEST(GradientReadyCallback, WhatIsFinalDoesNotChangeAnyMore) {
  const Model model({.layers = "dense(1100) relu dense(1100, tie=0) relu dense(1100)"}, {{1100}});
  std::vector<Scalar> gradient;
  const std::vector<Said> said = walk_back(model, 2000, gradient);
  expect_true(said, gradient);
  const Index last_layer = model.op(4).params.begin;
  EXPECT_GE(std::ranges::count_if(said, [&](const Said& one) { return one.from >= last_layer; }), 2);
}

// Several layers with weights that take a few samples at a time together: the last of those make them final.
TEST(GradientReadyCallback, BlocksOfSamplesAreFinalWithTheLast) {
  const Model model({.layers = "conv2d(8, 3, padding=same) relu conv2d(4, 3, padding=same) flatten dense(3)"},
                    {{64, 64}});
  ASSERT_EQ(backward_runs(model).front().ops, (Range{0, 4}));
  ASSERT_LT(backward_runs(model).front().rows, 9);
  std::vector<Scalar> gradient;
  const std::vector<Said> said = walk_back(model, 9, gradient);
  expect_true(said, gradient);
  for (const Index op : {4, 2, 0}) {
    const auto is_said = [&](const Said& one) { return one.from == model.op(op).params.begin; };
    EXPECT_TRUE(std::ranges::any_of(said, is_said)) << op;
  }
}

}  // namespace lockstep::gradients_final_test
