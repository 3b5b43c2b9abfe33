#include "lockstep/nn/model.h"

#include "lockstep/base/random.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/workspace.h"
#include "support/seed.h"

namespace lockstep::kernel_weights_test {

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

// Images so large that a pass takes a few at a time, and some are left.
constexpr Index kRows = 7;
const Shape kImage{{40, 40, 16}};
constexpr const char* kLayers = "conv2d(16, 3, padding=1) relu conv2d(16, 3, padding=1) flatten dense(4)";

// Outputs and gradient.
std::vector<Scalar> pass(Workspace& workspace, const Model& model, const ModelValues& values) {
  AlignedBuffer<Scalar> x(kRows * model.input().size()), gradient(model.layout().size);
  RandomStream random({.seed = test::seed()});
  for (Scalar& value : x.span()) value = random.normal();
  const ConstMatrix outputs = workspace.forward({.values = values,
                                                 .x = ConstMatrix(x.data(), kRows, model.input().size()),
                                                 .batch = {.training = true}});
  std::vector<Scalar> all(outputs.data(), outputs.data() + outputs.size());
  std::ranges::fill(workspace.output_gradient().values(), Scalar{1});
  workspace.backward(gradient.span(), Write::kReplace, {});
  all.insert(all.end(), gradient.data(), gradient.data() + gradient.size());
  return all;
}

// Of weights that come one after the other in the same place, as in training.
TEST(KernelWeights, AreThoseOfTheLastCall) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    if (precision == Precision::kBf16 && bf16_support() == Bf16Support::kNone) continue;
    const Model model({.layers = kLayers, .init = "he", .precision = precision}, kImage);
    AlignedBuffer<Scalar> weights(model.layout().size);
    KernelWeights prepared(model);
    ThreadTeam team(1);
    Workspace workspace(model, kRows, ActivationRetention::kForTraining);
    const auto with = [&](std::uint64_t seed, bool known) {
      initialise({&model.layout(), weights.span()}, seed, 1.0);
      ModelValues values = prepared.prepare({.weights = weights.span(), .state = {}}, team);
      if (!known) values.version = 0;  // laid out anew in each call
      return pass(workspace, model, values);
    };
    const std::vector<Scalar> one = with(1, true), other = with(2, true);
    EXPECT_NE(one, other);
    EXPECT_EQ(one, with(1, false));
    EXPECT_EQ(other, with(2, false));
  }
}

}  // namespace lockstep::kernel_weights_test
