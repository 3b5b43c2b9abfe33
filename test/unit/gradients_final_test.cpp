// What a walk back says of gradients that are final while it goes on: it keeps its word, and speaks in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/nn/workspace.h"

namespace lockstep {
namespace {

struct Said {
  Index from;
  std::vector<Scalar> gradient;  // from there on, at that moment
};

// Two layers whose products are cut into pieces, and a shared weight between them.
TEST(GradientsFinal, WhatIsFinalDoesNotChangeAnyMore) {
  constexpr Index kWidth = 1100;
  constexpr Index kRows = 1000;
  const Model model({.layers = "dense(1100) relu dense(1100, tie=0) relu dense(1100)"}, {{kWidth}});
  std::vector<Scalar> weights(static_cast<std::size_t>(model.layout().size));
  std::vector<Scalar> x(static_cast<std::size_t>(kRows * kWidth));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<Scalar>(i % 911)) / 30;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<Scalar>(i % 577));
  std::vector<Scalar> gradient(weights.size(), -1);

  Workspace workspace(model, kRows, true);
  workspace.forward({.values = {.weights = weights, .state = {}},
                     .x = ConstMatrix(x.data(), kRows, kWidth),
                     .batch = {.training = true}});
  workspace.output_gradient().setConstant(Scalar{0.25});
  std::vector<Said> said;
  workspace.backward(gradient, Write::kReplace, [&](Index from) {
    if (!said.empty() && said.back().from == from) return;
    said.push_back({from, {gradient.begin() + from, gradient.end()}});
  });

  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.back().from, 0);
  for (std::size_t i = 1; i < said.size(); ++i) EXPECT_LT(said[i].from, said[i - 1].from);
  for (const Said& one : said) {
    EXPECT_TRUE(std::equal(one.gradient.begin(), one.gradient.end(), gradient.begin() + one.from))
        << "from " << one.from;
  }
  const Index last_layer = model.node(4).params.begin;
  EXPECT_GE(std::ranges::count_if(said, [&](const Said& one) { return one.from >= last_layer; }), 2);
}

}  // namespace
}  // namespace lockstep
