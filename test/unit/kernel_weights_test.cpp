#include "lockstep/nn/kernel_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/nn/workspace.h"
#include "support/seed.h"

namespace lockstep {
namespace {

TEST(KernelWeights, AreRoundedWhereLayersMultiplyWithThem) {
  const Model model({.layers = "embedding(6, 8) layer_norm dense(4)", .precision = Precision::kBf16}, {{1}});
  AlignedBuffer<Scalar> weights(model.layout().size);
  std::ranges::fill(weights.span(), Scalar{1});
  KernelWeights prepared(model);
  ThreadTeam team(2);
  const std::span<const Bf16> arena =
      prepared.prepare({.weights = weights.span(), .state = {}}, team).rounded;
  for (const ParamInfo& param : model.layout().params) {
    const std::span<const Bf16> tensor = part(arena, param.range);
    const bool multiplied = param.name == "2.weight";
    EXPECT_TRUE(std::ranges::all_of(tensor, [&](Bf16 v) { return widen(v) == (multiplied ? 1 : 0); }))
        << param.name;
  }
}

// Outputs with weights of which one after the other is prepared in the same place, as in training.
TEST(KernelWeights, AreThoseOfTheLastCall) {
  constexpr Index kRows = 3;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Model model({.layers = "conv2d(16, 3) conv2d(16, 1) flatten dense(4)", .precision = precision},
                      {{6, 6, 16}});
    AlignedBuffer<Scalar> weights(model.layout().size);
    AlignedBuffer<Scalar> x(kRows * model.input().size());
    std::ranges::fill(x.span(), Scalar{1});
    KernelWeights prepared(model);
    ThreadTeam team(1);
    Workspace workspace(model, kRows, false);
    for (const Scalar scale : {Scalar{1}, Scalar{2}, Scalar{0}}) {
      std::ranges::fill(weights.span(), scale);
      const ConstMatrix outputs =
          workspace.forward({.values = prepared.prepare({.weights = weights.span(), .state = {}}, team),
                             .x = ConstMatrix(x.data(), kRows, model.input().size()),
                             .batch = {}});
      // All inputs are 1, all weights and biases the scale.
      const Scalar first = 144 * scale + scale;
      const Scalar second = 16 * first * scale + scale;
      const Scalar expected = 16 * 16 * second * scale + scale;
      EXPECT_NEAR(outputs(kRows - 1, 3), expected, 0.01F * expected) << scale;
    }
  }
}

}  // namespace
}  // namespace lockstep
