// Every preset fits images, or sequences, and has the number of weights that its source gives.
#include "lockstep/base/errors.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"

namespace lockstep::presets_test {
namespace {

Model build(const std::string& name, const Shape& input, Index outputs = 10) {
  return Model({.layers = preset_layers(name, outputs)}, input);
}

// The outputs for one sample of ones.
std::vector<Scalar> run(const Model& model) {
  AlignedBuffer<Scalar> weights(model.layout().size);
  AlignedBuffer<Scalar> state(model.state_layout().size);
  initialise({&model.layout(), weights.span()}, 1, 1.0);
  initialise({&model.state_layout(), state.span()}, 1, 1.0);
  const std::vector<Scalar> x(static_cast<std::size_t>(model.input().size()), 1);
  Workspace workspace(model, 1, ActivationRetention::kForEvaluation);
  const ConstMatrix y = workspace.forward({.values = {.weights = weights.span(), .state = state.span()},
                                           .x = ConstMatrix(x.data(), 1, model.input().size()),
                                           .batch = {}});
  return {y.data(), y.data() + y.size()};
}

TEST(Presets, FitTheirRecordsAndGiveTheOutputsAskedFor) {
  for (const PresetEntry& entry : preset_catalog()) {
    if (entry.name == "gpt") continue;  // of ids
    const bool of_sequences = entry.help.starts_with("for sequences");
    for (const Shape& input :
         {Shape{{28, 28}, of_sequences}, of_sequences ? Shape{{9, 1}, true} : Shape{{32, 32, 3}}}) {
      SCOPED_TRACE(entry.name + " on " + to_string(input));
      EXPECT_FALSE(entry.help.empty());
      const std::vector<Scalar> outputs = run(build(entry.name, input, 7));
      EXPECT_EQ(outputs.size(), 7U);
      EXPECT_TRUE(all_finite(outputs));
      const bool begins_with_zeros = entry.name == "nlinear";  // which is to repeat the last value
      EXPECT_NE(std::ranges::any_of(outputs, [](Scalar y) { return y != 0; }), begins_with_zeros);
    }
  }
}

// Those of GPT-2 at this size: ids, positions, blocks with biases, and a last norm; the output has no weights
// of its own.
TEST(Presets, AGptHasAnOutputForEachIdAtEachPosition) {
  const Model model = build("gpt", SequenceShape{.positions = 64, .channels = 1}.shape(), 65);
  EXPECT_EQ(model.output(), SequenceShape({.positions = 64, .channels = 65}).shape());
  constexpr Index kBlock = 4 * 128 * 128 + 8 * 128 * 128 + 128 * (3 + 1 + 4 + 1) + 4 * 128;
  EXPECT_EQ(model.layout().count(), 65 * 128 + 64 * 128 + 4 * kBlock + 2 * 128);
  EXPECT_TRUE(all_finite(run(model)));
  // Radford et al. 2019: 0.02, and 0.02 / sqrt(8) for the eight layers that are added to what goes around
  // them.
  for (const ParamInfo& param : model.layout().params) {
    if (param.shape.dims.size() < 2) continue;
    const bool is_added = param.name.ends_with("1.2.weight") || param.name.ends_with("body.3.weight");
    EXPECT_EQ(param.initialiser, Initialiser::kDeviation) << param.name;
    EXPECT_NEAR(param.deviation, is_added ? 0.0070711 : 0.02, 1e-7) << param.name;
    EXPECT_TRUE(param.decays) << param.name;
  }
}

TEST(Presets, FitTables) {
  EXPECT_EQ(run(build("mlp", {{20}}, 1)).size(), 1U);
  EXPECT_EQ(run(build("wide_deep", {{20}}, 1)).size(), 1U);
}

TEST(Presets, HaveTheNumbersOfWeightsOfTheirSources) {
  // With all connections in C3: 156 + 2,416 + 48,120 + 10,164 + 850.
  EXPECT_EQ(build("lenet5", {{28, 28}}).layout().count(), 61706);
  // Table 6 of the paper: 0.27 M. Without projections it is 269,722; those have 16 * 32 and 32 * 64.
  EXPECT_EQ(build("resnet20", {{32, 32, 3}}).layout().count(), 269722 + 16 * 32 + 32 * 64);
}

// Two convolutions a block, with dilations of 1, 2, 4, 8 and 16: the last position sees 125.
TEST(Presets, TheLastPositionOfATcnSees125) {
  const Model model = build("tcn", SequenceShape{.positions = 200, .channels = 1}.shape());
  AlignedBuffer<Scalar> weights(model.layout().size);
  std::ranges::fill(weights.span(), Scalar{0.1F});
  std::vector<Scalar> x(200, 1);
  Workspace workspace(model, 1, ActivationRetention::kForEvaluation);
  const auto output = [&] {
    return workspace.forward({.values = {.weights = weights.span(), .state = {}},
                              .x = ConstMatrix(x.data(), 1, 200),
                              .batch = {}})(0, 0);
  };
  const Scalar before = output();
  x[74] = 100;
  EXPECT_EQ(output(), before);
  x[75] = 100;
  EXPECT_NE(output(), before);
}

TEST(Presets, ResNetHas20LayersWithWeightsOnItsLongestPath) {
  const Model model = build("resnet20", {{32, 32, 3}});
  const auto layers = std::ranges::count_if(model.ops(), [](const ModelOp& op) {
    const std::string name = op.name();
    return (name == "conv2d" || name == "dense") && !op.path.ends_with("shortcut");
  });
  EXPECT_EQ(layers, 20);
}

TEST(Presets, UnknownNamesAreRefused) {
  test::expect_parts(test::error_text<ConfigError>([] { preset_layers("resnet2", 10); }),
                     {"unknown preset 'resnet2'", "did you mean 'resnet20'"});
}

}  // namespace
}  // namespace lockstep::presets_test
