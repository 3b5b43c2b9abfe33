#include "lockstep/nn/model.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"
#include "support/squares.h"

namespace lockstep::model_test {

Model make(const std::string& layers, const std::string& init = "he") {
  return Model({.layers = layers, .init = init}, {{28, 28}});
}

std::string error_of(const std::string& layers) {
  return test::error_or<ConfigError>("no error", [&] { make(layers); });
}

TEST(ModelText, LayersAndArguments) {
  const auto layers = parse_terms("dense(256)  relu\n leaky_relu ( 0.2 ) dense(units=10, init=zero)");
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(std::tuple(layers[0].name, layers[0].arguments[0].value, layers[2].arguments[0].value),
            std::tuple("dense", "256", "0.2"));
  EXPECT_EQ(std::tuple(layers[3].arguments[1].key, layers[3].arguments[1].value, layers[3].text),
            std::tuple("init", "zero", "dense(units=10, init=zero)"));
}

TEST(ModelText, ErrorsNameThePlaceOrTheLayer) {
  EXPECT_NE(error_of("dense(256").find("column 10: expected ',' or ')', found the end"), std::string::npos);
  EXPECT_NE(error_of("residual(tanh").find("column 14: expected '|' or ')', found the end"),
            std::string::npos);
  EXPECT_NE(error_of("batch_norm(mode=group(2, eps=1)").find("column 24: expected ')', found ', eps=1)'"),
            std::string::npos);
  EXPECT_NE(error_of("dense(10) )").find("column 11: expected a layer name, found ')'"), std::string::npos);
  EXPECT_NE(error_of("").find("model.layers is empty"), std::string::npos);
  EXPECT_NE(
      error_of("dense(ten)").find("'dense(ten)': 'units' must be a whole number of at least 1, found 'ten'"),
      std::string::npos);
  EXPECT_NE(error_of("dense(0)").find("at least 1"), std::string::npos);
  EXPECT_NE(error_of("dense").find("'units' is missing"), std::string::npos);
  EXPECT_NE(error_of("dense(1, 2)").find("argument '2'"), std::string::npos);
  EXPECT_NE(error_of("dense(1, size=2)").find("argument 'size=2'"), std::string::npos);
  EXPECT_NE(error_of("dense(10, init=hee)").find("did you mean 'he'"), std::string::npos);
  EXPECT_NE(error_of("dens(10)").find("did you mean 'dense'"), std::string::npos);
  EXPECT_NE(error_of("relu").find("no weights to train"), std::string::npos);
}

// A product of factors is the gradient of one layer; that of a shared weight is the sum of several.
TEST(Model, AWeightThatTwoLayersShareIsNotLeftAsFactors) {
  const Model model({.layers = "dense(30) relu dense(30, tie=0) dense(5)"}, {{30}});
  const std::vector<FactoredTensor> tensors = model.factored_tensors();
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors.front().op, 3);
}

TEST(Model, ShapesNamesAndAlignedRanges) {
  const Model model = make("flatten dense(30) relu dense(10)");
  EXPECT_EQ(model.output(), (Shape{{10}}));
  const auto& params = model.layout().params;
  ASSERT_EQ(params.size(), 4U);
  EXPECT_EQ(params[0].name, "1.weight");
  EXPECT_EQ(params[0].shape, (Shape{{30, 784}}));
  EXPECT_EQ(params[3].name, "3.bias");
  EXPECT_EQ(model.layout().count(), 784 * 30 + 30 + 30 * 10 + 10);
  for (const ParamInfo& param : params) {
    EXPECT_EQ(param.range.begin % kAlignment, 0);
    EXPECT_EQ(param.decays, param.name.ends_with("weight"));
  }
  EXPECT_EQ(model.training_flops(), 3 * (2 * 784 * 30 + 30 + 2 * 30 * 10));
}

// Relu and tanh work in place, but not on what another layer takes too: dense(1) gives -2, whose relu is 0.
TEST(Model, ALayerLeavesWhatItTakesToTheOthersWhoTakeIt) {
  for (const auto& [layers, expected] : {std::pair<std::string, std::vector<Scalar>>{"residual(relu)", {-2}},
                                         {"concat(relu | tanh)", {0, std::tanh(Scalar{-2})}}}) {
    SCOPED_TRACE(layers);
    const Model model({.layers = "dense(1, bias=false) " + layers}, {{1}});
    AlignedBuffer<Scalar> weights(model.layout().size);
    weights.span().front() = -2;
    const Scalar x = 1;
    for (const auto kept : {ActivationRetention::kForTraining, ActivationRetention::kForEvaluation}) {
      Workspace workspace(model, 1, kept);
      const ConstMatrix y = workspace.forward(
          {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(&x, 1, 1), .batch = {}});
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y.data()[i], expected[i], 1e-6) << i;
    }
  }
}

TEST(Model, ACompositeTakesWhatTheOneBeforeItGives) {
  for (const auto& [layers, expected] :
       {std::pair<std::string, std::vector<Scalar>>{"residual(relu) residual(relu)", {12}},
        {"residual(residual(relu))", {9}},
        {"concat(residual(relu) | relu)", {6, 3}},
        {"concat(relu | relu) residual(relu)", {6, 6}},
        {"wide_deep(relu | relu) concat(relu | residual(relu))", {6, 12}}}) {
    SCOPED_TRACE(layers);
    const Model model({.layers = "dense(1, bias=false) " + layers}, {{1}});
    AlignedBuffer<Scalar> weights(model.layout().size);
    weights.span().front() = 3;
    Workspace workspace(model, 1, ActivationRetention::kForEvaluation);
    const Scalar x = 1;
    const ConstMatrix y = workspace.forward(
        {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(&x, 1, 1), .batch = {}});
    EXPECT_TRUE(std::ranges::equal(std::span(y.data(), static_cast<std::size_t>(y.size())), expected));
  }
  const Model twice({.layers = "residual(dense(1)) residual(dense(1))"}, {{1}});
  EXPECT_EQ(twice.layout().params[0].name, "0.body.0.weight");
  EXPECT_EQ(twice.layout().params[2].name, "1.body.0.weight");
}

TEST(Initialise, IsKeyedByNameAndHasTheRightSpread) {
  for (const auto& [init, deviation] : {std::pair<std::string, double>{"he", std::sqrt(2.0 / 784)},
                                        {"xavier", std::sqrt(2.0 / (784 + 300))},
                                        {"normal", 0.01},
                                        {"zero", 0.0}}) {
    SCOPED_TRACE(init);
    const Model model = make("dense(300) relu dense(10)", init);
    AlignedBuffer<Scalar> weights(model.layout().size);
    initialise({&model.layout(), weights.span()}, 1, 0.01);
    const auto first = part(std::span<const Scalar>(weights.span()), model.layout().params[0].range);
    const double found = std::sqrt(test::sum_of_squares(first) / static_cast<double>(first.size()));
    EXPECT_NEAR(found, deviation, 0.01 * deviation);
    const auto bias = part(std::span<const Scalar>(weights.span()), model.layout().params[1].range);
    EXPECT_EQ(test::sum_of_squares(bias), 0);
  }
  // What comes behind a tensor does not change it.
  const Model a = make("dense(30) relu dense(10)"), b = make("dense(30) relu dense(20) relu dense(10)");
  AlignedBuffer<Scalar> weights_a(a.layout().size), weights_b(b.layout().size);
  initialise({&a.layout(), weights_a.span()}, 7, 0.01);
  initialise({&b.layout(), weights_b.span()}, 7, 0.01);
  EXPECT_TRUE(std::equal(weights_a.data(), weights_a.data() + 784 * 30, weights_b.data()));
}

}  // namespace lockstep::model_test
