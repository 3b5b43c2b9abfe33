// Images so large that a pass takes them a few at a time.
#include "lockstep/nn/workspace.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/random.h"
#include "support/seed.h"

namespace lockstep::row_blocks_test {

constexpr Index kSamples = 5;
const Shape kImage{{128, 128}};  // eight channels of it: half a MiB, a sample to a block

struct Fixture {
  explicit Fixture(const std::string& layers, ActivationRetention kept = ActivationRetention::kForTraining)
      : model({.layers = layers, .init = "he"}, kImage),
        workspace(model, kSamples, kept),
        x(kSamples * kImage.size()),
        factors(kSamples * model.output().size()),
        weights(model.layout().size),
        state(model.state_layout().size),
        gradient(model.layout().size) {
    initialise({&model.layout(), weights.span()}, 1, 1.0);
    initialise({&model.state_layout(), state.span()}, 1, 1.0);
    RandomStream random({.seed = test::seed()});
    for (Scalar& value : x.span()) value = random.normal();
    for (Scalar& value : factors.span()) value = random.normal();
    for (Scalar& value : weights.span()) value += Scalar{0.1F} * random.normal();
    std::ranges::fill(gradient.span(), Scalar{-1});  // to be overwritten
  }

  ConstMatrix forward(Range rows) {
    return workspace.forward(
        {.values = {.weights = weights.span(), .state = state.span()},
         .x = ConstMatrix(x.data() + rows.begin * kImage.size(), rows.size(), kImage.size()),
         .batch = {.training = true, .seed = 7, .step = 3, .first_row = rows.begin},
         .factors = gradient_factors});
  }

  void back(Range rows, Write write) {
    Matrix dy = workspace.output_gradient();
    std::copy_n(factors.data() + rows.begin * dy.cols(), dy.size(), dy.data());
    workspace.backward(gradient.span(), write, {});
  }

  double value() {
    const ConstMatrix y = forward({0, kSamples});
    double sum = 0;
    for (Index i = 0; i < y.size(); ++i) sum += double{y.data()[i]} * double{factors.data()[i]};
    return sum;
  }
  Model model;
  Workspace workspace;
  AlignedBuffer<Scalar> x, factors, weights, state, gradient;
  std::vector<FactorBuffers> gradient_factors = {};  // by op
};

TEST(RowBlocks, RunsEndBeforeStatisticsAndAroundLargeWeights) {
  const Fixture fixture("conv2d(8, 3, padding=same) batch_norm relu maxpool(2) flatten dense(10) relu");
  const std::vector<OpRun> forward = forward_runs(fixture.model);
  ASSERT_EQ(forward.size(), 4U);
  EXPECT_EQ(std::tuple(forward[0].ops, forward[1].ops, forward[1].rows, forward[2].ops, forward[2].rows),
            std::tuple((Range{0, 1}), (Range{1, 5}), 1, (Range{5, 6}), 0));
  EXPECT_EQ(forward[3].ops, (Range{6, 7}));
  const std::vector<OpRun> backward = backward_runs(fixture.model);
  ASSERT_EQ(backward.size(), 5U);
  EXPECT_EQ(std::tuple(backward[0].ops, backward[0].rows, backward[1].ops, backward[1].rows, backward[2].ops),
            std::tuple((Range{0, 1}), 1, (Range{1, 2}), 0, (Range{2, 5})));
  EXPECT_EQ(std::tuple(backward[2].rows, backward[3].ops, backward[3].rows), std::tuple(1, (Range{5, 6}), 0));
}

void expect_sums_of_samples(const std::string& layers) {
  SCOPED_TRACE(layers);
  Fixture whole(layers), parts(layers);
  ASSERT_LT(backward_runs(whole.model).front().rows, kSamples);
  const ConstMatrix y = whole.forward({0, kSamples});
  whole.back({0, kSamples}, Write::kReplace);
  for (Index row = 0; row < kSamples; ++row) {
    const ConstMatrix one = parts.forward({row, row + 1});
    for (Index i = 0; i < y.cols(); ++i)
      EXPECT_NEAR(one(0, i), y(row, i), 1e-4 * std::max(1.0, std::abs(double{y(row, i)})));
    parts.back({row, row + 1}, row == 0 ? Write::kReplace : Write::kAdd);
  }
  for (Index i = 0; i < whole.gradient.size(); ++i) {
    const double expected = parts.gradient.data()[i];
    EXPECT_NEAR(whole.gradient.data()[i], expected, 1e-3 * std::max(1.0, std::abs(expected))) << i;
  }
}

TEST(RowBlocks, SamplesOfABlockAreThoseOfTheBatch) {
  expect_sums_of_samples("conv2d(8, 3, padding=same) relu maxpool(2) dropout(0.5) flatten dense(3)");
  expect_sums_of_samples(
      "conv2d(8, 3, padding=same) residual(conv2d(8, 3, padding=same) relu) avgpool(32) flatten layer_norm "
      "dense(3)");
}

// What lies behind in a run is final no earlier than what lies before it.
TEST(RowBlocks, ARunHasTheWeightsOfABucketAtMost) {
  std::string layers = "avgpool(32) flatten dense(128, bias=false)";
  for (int i = 0; i < 19; ++i) layers += " dense(128, bias=false)";  // 64 KiB each; the first 8
  const Model model({.layers = layers}, kImage);
  const std::vector<OpRun> runs = backward_runs(model);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].ops, (Range{0, 18}));
  EXPECT_EQ(runs[1].ops, (Range{18, 22}));
}

TEST(RowBlocks, FactorsAreThoseOfAllSamples) {
  Fixture fixture("conv2d(8, 3, padding=same) relu avgpool(32) flatten dense(150)");
  constexpr Index kIn = 128;
  constexpr Index kOut = 150;
  ASSERT_EQ(backward_runs(fixture.model).back().rows, 1);
  fixture.forward({0, kSamples});
  fixture.back({0, kSamples}, Write::kReplace);
  AlignedBuffer<Scalar> x(kSamples * kIn), dy_t(kOut * kSamples);
  Fixture factored("conv2d(8, 3, padding=same) relu avgpool(32) flatten dense(150)");
  factored.gradient_factors.resize(5);
  factored.gradient_factors[4] = {.x = x.data(), .dy_t = dy_t.data(), .stride = kSamples};
  factored.forward({0, kSamples});
  factored.back({0, kSamples}, Write::kReplace);
  const Scalar* whole = fixture.gradient.data() + fixture.model.op(4).params.begin;
  for (Index i = 0; i < kOut * kIn; ++i) {
    double sum = 0;
    for (Index row = 0; row < kSamples; ++row)
      sum += double{dy_t.data()[i / kIn * kSamples + row]} * double{x.data()[row * kIn + i % kIn]};
    ASSERT_NEAR(whole[i], sum, 1e-4 * std::max(1.0, std::abs(sum))) << i;
  }
}

TEST(RowBlocks, NodesOfARunCanBeTakenOneByOne) {
  Fixture whole("conv2d(8, 3, padding=same) relu maxpool(2) flatten dense(3)");
  Fixture parts("conv2d(8, 3, padding=same) relu maxpool(2) flatten dense(3)", ActivationRetention::kAll);
  const ConstMatrix y = whole.forward({0, kSamples});
  whole.back({0, kSamples}, Write::kReplace);
  const auto ops = std::ssize(parts.model.ops());
  parts.workspace.begin({.values = {.weights = parts.weights.span(), .state = parts.state.span()},
                         .x = ConstMatrix(parts.x.data(), kSamples, kImage.size()),
                         .batch = {.training = true, .seed = 7, .step = 3}});
  for (Index i = 0; i < ops; ++i) parts.workspace.forward({i, i + 1});
  const ConstMatrix z = parts.workspace.outputs();
  for (Index i = 0; i < y.size(); ++i) EXPECT_EQ(y.data()[i], z.data()[i]);
  Matrix dy = parts.workspace.output_gradient();
  std::copy_n(parts.factors.data(), dy.size(), dy.data());
  parts.workspace.begin_backward(parts.gradient.span(), Write::kReplace);
  for (Index i = ops - 1; i >= 0; --i)
    parts.workspace.backward({i, i + 1}, parts.gradient.span(), Write::kReplace, {});
  for (Index i = 0; i < whole.gradient.size(); ++i)
    EXPECT_EQ(whole.gradient.data()[i], parts.gradient.data()[i]);
}

TEST(RowBlocks, BatchNormSeesAllSamples) {
  Fixture fixture("conv2d(8, 3, padding=same) batch_norm tanh avgpool(32) flatten dense(3)");
  fixture.forward({0, kSamples});
  EXPECT_EQ(fixture.workspace.sums(1).own_forward[0], static_cast<double>(kSamples * kImage.size()));
  fixture.back({0, kSamples}, Write::kReplace);
  for (const ParamInfo& param : fixture.model.layout().params)
    for (const Index i : {param.range.begin, param.range.end - 1}) {
      const Scalar kept = fixture.weights.data()[i], up = kept + Scalar{1e-3F};
      const Scalar down = kept - Scalar{1e-3F};
      fixture.weights.data()[i] = up;
      const double above = fixture.value();
      fixture.weights.data()[i] = down;
      const double below = fixture.value();
      fixture.weights.data()[i] = kept;
      const double slope = (above - below) / (double{up} - double{down});
      EXPECT_NEAR(fixture.gradient.data()[i], slope, 0.02 * std::max(1.0, std::abs(slope)))
          << param.name << " " << i;
    }
}

}  // namespace lockstep::row_blocks_test
