// From summed gradients to weights, against PyTorch: division, clipping, decay without biases, trust ratio.
#include "lockstep/distributed/update.h"

#include "distributed/strategies/sharded_update.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/random.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/statistics.h"
#include "lockstep/nn/model.h"
#include "support/reference_gradient.h"
#include "support/seed.h"
#include "support/squares.h"
#include "support/torch_references.h"

namespace lockstep::update_test {

// One weight matrix of 3 x 4 and a bias of 3.
Layout small_layout() {
  return Model({.layers = "dense(3)"}, {{4}}).layout();
}

struct Update {
  explicit Update(const OptimizerOptions& options, const UpdateRules& rules = {})
      : layout(small_layout()),
        optimizer(find_entry(optimizer_catalog(), "optimizer", options.optimizer).make(options)),
        update(layout, *optimizer, rules),
        weights(layout.size),
        gradient(layout.size) {}

  bool apply(const UpdateRequest& request) {
    const bool good = update.good(gradient.span(), request.weight);
    if (good) update.step(weights.span(), gradient.span(), request);
    return good;
  }

  std::span<Scalar> of(std::size_t param, AlignedBuffer<Scalar>& arena) {
    return part(arena.span(), layout.params[param].range);
  }

  void fill(std::size_t param, Scalar weight, Scalar of_gradient) {
    std::ranges::fill(of(param, weights), weight);
    std::ranges::fill(of(param, gradient), of_gradient);
  }
  Layout layout;
  std::unique_ptr<Optimizer> optimizer;
  ParameterUpdate update;
  AlignedBuffer<Scalar> weights, gradient;
};

TEST(Update, ClipsNumbersAndThenTheGlobalNormAsPyTorchDoes) {
  nlohmann::json references = test::torch_references("value_clipping");
  for (const auto& one : test::torch_references("clipping")) references.push_back(one);
  for (const auto& one : references) {
    SCOPED_TRACE(one.dump());
    const UpdateRules rules{.clip_norm = one.at("max_norm"), .clip_value = one.value("value", 0.0)};
    const auto gradient = one.at("gradient").get<std::vector<double>>();
    std::vector<double> expected;  // after a step of one from zero
    for (const double value : one.at("clipped").get<std::vector<double>>()) expected.push_back(-value);
    constexpr Index kSamples = 4;
    Update run({}, rules);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      run.of(0, run.gradient)[i] = static_cast<Scalar>(gradient[i] * kSamples);  // a sum over the samples
    }
    ASSERT_TRUE(run.apply({.step = 1, .weight = kSamples, .lr = 1}));
    test::expect_close(run.of(0, run.weights), expected, 1e-7);
    // As a worker does it whose servers take the step.
    for (std::size_t i = 0; i < gradient.size(); ++i)
      run.of(0, run.gradient)[i] = static_cast<Scalar>(-gradient[i] * kSamples);
    run.update.make_means(run.gradient.span(), kSamples);
    test::expect_close(run.of(0, run.gradient), expected, 1e-7);
  }
}

TEST(Update, NoNumberIsBeyondClipValue) {
  constexpr Scalar kLimit = 0.1F;
  Update run({}, {.clip_value = double{kLimit}});
  for (const double weight : {3.0, 7.0, 49.0, 1e-20}) {
    std::ranges::fill(run.weights.span(), Scalar{0});
    std::ranges::fill(run.gradient.span(), static_cast<Scalar>(5 * weight));
    ASSERT_TRUE(run.apply({.step = 1, .weight = weight, .lr = 1}));
    for (const Scalar w : run.of(0, run.weights)) EXPECT_EQ(w, -kLimit) << weight;
  }
}

// What the log says of a step: the mean gradient between the clippings, and the weights before the step.
TEST(Update, MeasuresTheGradientBetweenTheTwoClippings) {
  struct Case {
    double value, norm;
    Scalar large;  // what becomes of 0.8
  };
  for (const Case& one : {Case{0, 0, 0.8F}, {0, 0.25, 0.8F}, {0.5, 0, 0.5F}, {0.5, 0.25, 0.5F}}) {
    SCOPED_TRACE(std::to_string(one.value) + " " + std::to_string(one.norm));
    Update run({}, {.clip_norm = one.norm, .clip_value = one.value});
    constexpr Scalar kWeight = 8;
    run.of(0, run.gradient)[0] = 0.8F * kWeight;
    run.of(0, run.gradient)[1] = -0.125F * kWeight;
    run.of(0, run.weights)[5] = 3;
    run.of(1, run.weights)[1] = -4;
    UpdateStatistics statistics{.with_histograms = true};
    ASSERT_TRUE(run.apply({.step = 1, .weight = kWeight, .lr = 0.5, .statistics = &statistics}));
    EXPECT_NEAR(statistics.gradient_norm, std::hypot(double{one.large}, 0.125), 1e-6);
    EXPECT_NEAR(statistics.weight_norm, 5, 1e-6);
    const auto count = [](const std::vector<double>& counts, Index param, Scalar value) {
      return at(counts, param * kHistogramBins + histogram_bin(value));
    };
    ASSERT_EQ(std::ssize(statistics.gradients), 2 * kHistogramBins);
    EXPECT_EQ(count(statistics.gradients, 0, one.large), 1);
    EXPECT_EQ(count(statistics.gradients, 0, -0.125F), 1);
    EXPECT_EQ(count(statistics.gradients, 0, 0), 12 - 2);
    EXPECT_EQ(count(statistics.gradients, 1, 0), 3);
    EXPECT_EQ(count(statistics.weights, 0, 3), 1);
    EXPECT_EQ(count(statistics.weights, 1, -4), 1);
    EXPECT_EQ(count(statistics.weights, 1, 0), 2);
  }
}

// Tensors as in PyTorch's parameter groups, each with its own rate and weight decay.
TEST(Update, MultipliersEqualParameterGroupsOfPyTorch) {
  for (const auto& one : test::torch_references("groups")) {
    SCOPED_TRACE(one.at("optimizer").dump() + " " + one.at("groups").dump());
    Layout layout;
    append(layout, {.name = "0.weight", .shape = {{12}}, .range = {}});
    append(layout, {.name = "1.bias", .shape = {{12}}, .range = {}, .decays = false});
    OptimizerOptions options;
    options.optimizer = one.at("optimizer");
    options.momentum = one.at("options").value("momentum", 0.0);
    const auto optimizer = find_entry(optimizer_catalog(), "optimizer", options.optimizer).make(options);
    UpdateRules rules{.weight_decay = one.at("weight_decay")};
    for (const auto& group : one.at("groups"))
      rules.multipliers.push_back({.lr = group.at(0), .weight_decay = group.at(1)});
    ParameterUpdate update(layout, *optimizer, rules);
    AlignedBuffer<Scalar> weights(layout.size), gradient(layout.size);
    for (const ParamInfo& param : layout.params)
      std::ranges::copy(test::reference_start(), part(weights.span(), param.range).begin());
    for (Index step = 1; step <= 10; ++step) {
      for (const ParamInfo& param : layout.params)
        test::fill_reference_gradient(part(std::span<const Scalar>(weights.span()), param.range), step,
                                      part(gradient.span(), param.range));
      update.step(weights.span(), gradient.span(), {.step = step, .weight = 1, .lr = one.at("lr")});
    }
    for (std::size_t i = 0; i < layout.params.size(); ++i)
      test::expect_close(part(weights.span(), layout.params[i].range), one.at("weights").at(i), 1e-6);
  }
}

// Frozen: not even a -0 becomes 0, weight decay and momentum are none, and the norm is that of the others.
TEST(Update, AFrozenTensorKeepsItsBitsAndCountsInNoNorm) {
  for (const std::string name : {"sgd", "adamw", "lamb", "adafactor", "muon"}) {
    SCOPED_TRACE(name);
    const auto weights_of = [&](Scalar gradient_of_frozen, const UpdateRules& rules) {
      Update run({.optimizer = name}, rules);
      run.fill(0, -0.0F, gradient_of_frozen);
      run.fill(1, 2, 3);
      for (Index step = 1; step <= 2; ++step) EXPECT_TRUE(run.apply({.step = step, .weight = 1, .lr = 0.1}));
      for (const Scalar weight : run.of(0, run.weights)) EXPECT_TRUE(weight == 0 && std::signbit(weight));
      for (AlignedBuffer<Scalar>& slot : run.update.slots()) EXPECT_EQ(slot.span()[0], 0);
      return std::vector<Scalar>(run.of(1, run.weights).begin(), run.of(1, run.weights).end());
    };
    const UpdateRules rules{.weight_decay = 0.5,
                            .clip_norm = 1,
                            .clip_value = 2.5,
                            .multipliers = {{.lr = 0, .weight_decay = 1}, {.lr = 1, .weight_decay = 1}}};
    const std::vector<Scalar> small = weights_of(-1, rules);
    EXPECT_LT(small.front(), 2);
    EXPECT_EQ(weights_of(-1000, rules), small);
  }
}

TEST(Norms, TheSquaresOfABlockDoNotDependOnWhatFollows) {
  AlignedBuffer<Scalar> values(3000);
  RandomStream random({.seed = test::seed()});
  for (Scalar& value : values.span()) value = random.normal();
  const std::span<const Scalar> all = values.span();
  const std::array blocks{all.first(1024), all.subspan(1024, 1024), all.subspan(2048)};
  std::array<double, 3> together = {};
  sum_squares_of_blocks(all, together);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::array<double, 1> alone = {};
    sum_squares_of_blocks(blocks[i], alone);
    EXPECT_EQ(together[i], alone.front());
    EXPECT_NEAR(alone.front(), test::sum_of_squares(blocks[i]), 1e-9);
  }
}

TEST(Update, DecayPullsWeightsAndSparesBiases) {
  Update run({}, {.weight_decay = 0.5});
  for (const std::size_t param : {0, 1}) run.fill(param, 2, 0);
  ASSERT_TRUE(run.apply({.step = 1, .weight = 1, .lr = 0.1}));
  for (const Scalar weight : run.of(0, run.weights)) EXPECT_FLOAT_EQ(weight, 2 - 0.1F * 0.5F * 2);
  for (const Scalar bias : run.of(1, run.weights)) EXPECT_EQ(bias, 2);
}

TEST(Update, LambStepsByTheNormOfEachTensor) {
  Update run({.optimizer = "lamb"});
  run.fill(0, 3, 5);
  run.fill(1, 0, 5);
  ASSERT_TRUE(run.apply({.step = 1, .weight = 1, .lr = 0.1}));
  // The first Adam direction is 1 everywhere: weights move by lr * |w| / |1|, a tensor of zeros by lr.
  for (const Scalar weight : run.of(0, run.weights)) EXPECT_NEAR(weight, 3 - 0.1 * 3, 1e-6);
  for (const Scalar bias : run.of(1, run.weights)) EXPECT_NEAR(bias, -0.1, 1e-6);
}

TEST(Update, LambStepsByTheMultiplierOfEachTensor) {
  Update run({.optimizer = "lamb"},
             {.multipliers = {{.lr = 2, .weight_decay = 1}, {.lr = 0.5, .weight_decay = 1}}});
  run.fill(0, 3, 5);
  run.fill(1, 0, 5);
  ASSERT_TRUE(run.apply({.step = 1, .weight = 1, .lr = 0.1}));
  for (const Scalar weight : run.of(0, run.weights)) EXPECT_NEAR(weight, 3 - 2 * 0.1 * 3, 1e-6);
  for (const Scalar bias : run.of(1, run.weights)) EXPECT_NEAR(bias, -0.5 * 0.1, 1e-6);
}

// Nothing to step along: the quotient of the norms would be one by 0.
TEST(Update, LambLeavesATensorWithoutADirectionWhereItIs) {
  Update run({.optimizer = "lamb"}, {.weight_decay = 0.5});  // which spares the bias
  run.fill(0, 3, 5);
  run.fill(1, 2, 0);
  ASSERT_TRUE(run.apply({.step = 1, .weight = 1, .lr = 0.1}));
  for (const Scalar bias : run.of(1, run.weights)) EXPECT_EQ(bias, 2);
  for (const Scalar weight : run.of(0, run.weights)) EXPECT_NEAR(weight, 3 - 0.1 * 3, 1e-6);
}

// Two tensors that a team divides, one too small for that, with norms over all; matrices for their shapes.
std::vector<Scalar> weights_of_team(const std::string& optimizer_name, int threads) {
  Layout layout;
  append(layout, {.name = "0.weight", .shape = {{40'003}}, .range = {}});
  append(layout, {.name = "1.weight", .shape = {{7}}, .range = {}});
  append(layout, {.name = "2.weight", .shape = {{90'000}}, .range = {}});
  for (Index layer = 3; const Shape& shape : {Shape{{90, 40}}, Shape{{40, 7}}, Shape{{3, 40}}}) {
    append(layout, {.name = std::to_string(layer) + ".weight", .shape = shape, .range = {}, .layer = layer});
    ++layer;
  }
  const auto optimizer = find_entry(optimizer_catalog(), "optimizer", optimizer_name)
                             .make({.optimizer = optimizer_name, .momentum = 0.9});
  ThreadTeam team(threads);
  const UpdateRules rules{
      .weight_decay = 0.01,
      .clip_norm = 0.5,
      .clip_value = 2,
      .multipliers = {{.lr = 2, .weight_decay = 1}, {.lr = 1, .weight_decay = 0}, {}, {}, {}, {}}};
  ParameterUpdate update(layout, *optimizer, rules, &team);
  AlignedBuffer<Scalar> weights(layout.size), gradient(layout.size);
  for (Index step = 1; step <= 3; ++step) {
    for (std::size_t i = 0; i < gradient.span().size(); ++i)
      gradient.data()[i] = static_cast<Scalar>(i % 97) / Scalar{7} - static_cast<Scalar>(step);
    EXPECT_TRUE(update.good(gradient.span(), 4));
    update.step(weights.span(), gradient.span(), {.step = step, .weight = 4, .lr = 0.1});
  }
  gradient.data()[layout.params[2].range.end - 1] = std::numeric_limits<Scalar>::quiet_NaN();
  EXPECT_FALSE(update.good(gradient.span(), 4));
  return {weights.span().begin(), weights.span().end()};
}

TEST(Update, TeamsOfAnySizeGiveTheSameBits) {
  for (const std::string optimizer : {"sgd", "adam", "lamb", "nadam", "adafactor", "muon"}) {
    const std::vector<Scalar> alone = weights_of_team(optimizer, 1);
    for (const int threads : {2, 3, 7})
      EXPECT_TRUE(weights_of_team(optimizer, threads) == alone) << optimizer << ", threads " << threads;
  }
}

TEST(Update, DividesByWhatTheSamplesWeighAndTakesNothingForZero) {
  Update run({});
  for (const double weight : {0.25, 3.0, 1e-38, 1e30}) {
    std::ranges::fill(run.weights.span(), Scalar{0});
    std::ranges::fill(run.gradient.span(), static_cast<Scalar>(2 * weight));
    ASSERT_TRUE(run.apply({.step = 1, .weight = weight, .lr = 0.5}));
    for (const Scalar w : run.of(0, run.weights)) EXPECT_NEAR(w, -1, 1e-6) << weight;
  }
  std::ranges::fill(run.weights.span(), Scalar{1});
  std::ranges::fill(run.gradient.span(), Scalar{0});
  ASSERT_TRUE(run.apply({.step = 1, .weight = 0, .lr = 0.5}));
  for (const Scalar w : run.weights.span()) EXPECT_EQ(w, 1);
  run.of(0, run.gradient)[0] = std::numeric_limits<Scalar>::infinity();
  EXPECT_FALSE(run.apply({.step = 1, .weight = 1e30, .lr = 0.5}));
}

// The loss stands behind the gradients; of several bad tensors backward comes to the last one first.
TEST(Update, SaysWhatIsBadInASum) {
  const Layout layout = small_layout();
  constexpr Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();
  const auto bad = [&](std::vector<Index> places, double weight) {
    std::vector<Scalar> sum(static_cast<std::size_t>(layout.size) + 1);
    for (const Index place : places) at(sum, place) = weight > 1 ? 2e18F : kNaN;
    return describe_bad_sum(layout, sum, weight);
  };
  const Index matrix = layout.params[0].range.end - 1, bias = layout.params[1].range.begin;
  EXPECT_EQ(bad({layout.size}, 1), "the loss is not finite");
  EXPECT_EQ(bad({matrix, layout.size}, 1), "the loss is not finite");
  EXPECT_EQ(bad({matrix}, 1), "the gradient of 0.weight is not finite or beyond 1e18");
  EXPECT_EQ(bad({matrix, bias}, 1), "the gradient of 0.bias is not finite or beyond 1e18");
  EXPECT_EQ(bad({matrix}, 1.5), "the gradient of 0.weight is not finite or beyond 1e18");
  EXPECT_EQ(bad({matrix}, 4), "the gradient is not finite") << "their mean is below";
}

// What ranks compare, a name for each tensor of each.
TEST(Update, NamesEachWeightAndEachNumberOfItsState) {
  for (const auto& [optimizer, numbers] : std::map<std::string, Index>{
           {"sgd", 0}, {"adam", 2 * 15}, {"adafactor", 3 + 4 + 3}, {"muon", 2 * 15}}) {
    SCOPED_TRACE(optimizer);
    Update run({.optimizer = optimizer});
    ASSERT_TRUE(run.apply({.step = 1, .weight = 1, .lr = 1}));
    Index weights = 0, state = 0;
    for (const NamedSpan& part : run.update.named_parts(run.weights.span())) {
      const bool of_state = part.name.starts_with("optimizer state ");
      EXPECT_TRUE(part.name.ends_with("0.weight") || part.name.ends_with("0.bias")) << part.name;
      (of_state ? state : weights) += std::ssize(part.values);
    }
    EXPECT_EQ(weights, 15);
    EXPECT_EQ(state, numbers);
  }
}

TEST(Update, RefusesBadGradientsAndLeavesTheWeightsAlone) {
  for (const Scalar bad : {std::numeric_limits<Scalar>::quiet_NaN(), std::numeric_limits<Scalar>::infinity(),
                           -std::numeric_limits<Scalar>::infinity(), Scalar{3e18F}}) {
    Update run({});
    std::ranges::fill(run.weights.span(), Scalar{1});
    run.of(1, run.gradient)[2] = bad;
    EXPECT_FALSE(run.apply({.step = 1, .weight = 2, .lr = 0.1}));
    for (const Scalar weight : run.weights.span()) EXPECT_EQ(weight, 1);
  }
}

TEST(HistogramBins, ABinEndsAboveItsNumbersAndTheNextOneBelow) {
  for (const Scalar value :
       {1e-9F, 0.3F, 1.0F, 1.4999F, 1.5F, 700.0F, -1e-9F, -0.3F, -1.1F, -1.6F, -700.0F}) {
    const Index bin = histogram_bin(value);
    EXPECT_LE(static_cast<double>(value), histogram_limit(bin)) << value;
    EXPECT_GE(static_cast<double>(value), histogram_limit(bin - 1)) << value;
  }
}

TEST(HistogramBins, LimitsRiseAndTheOuterBinsTakeTheRest) {
  for (Index bin = 1; bin < kHistogramBins; ++bin) EXPECT_LT(histogram_limit(bin - 1), histogram_limit(bin));
  EXPECT_EQ(histogram_bin(0), kHistogramBins / 2);
  EXPECT_EQ(histogram_bin(1e30F), kHistogramBins - 1);
  EXPECT_EQ(histogram_bin(-1e30F), 0);
  EXPECT_EQ(histogram_bin(std::nanf("")), kHistogramBins / 2);
}

}  // namespace lockstep::update_test
