#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/loss.h"
#include "support/config_text.h"
#include "support/error_text.h"
#include "support/torch_references.h"

namespace lockstep::losses_test {

ConstMatrix view(const std::vector<Scalar>& values, Index rows) {
  return as_matrix(std::span(values), rows, std::ssize(values) / rows);
}

// What a reference gives a loss, and room for the gradient.
struct Given {
  explicit Given(const nlohmann::json& reference)
      : loss(find_entry(loss_catalog(), "loss", reference.at("loss").get<std::string>())
                 .make(test::train_config(reference.at("options")).loss)),
        rows(reference.at("rows")),
        outputs(reference.at("outputs").get<std::vector<Scalar>>()),
        targets(reference.at("targets").get<std::vector<Scalar>>()),
        gradient(outputs.size(), 99),
        slopes(as_matrix(std::span(gradient), rows, std::ssize(outputs) / rows)) {}
  std::unique_ptr<Loss> loss;
  Index rows;
  std::vector<Scalar> outputs, targets, gradient;
  Matrix slopes;  // the gradient
};

std::string name_of(const nlohmann::json& reference) {
  return reference.at("loss").get<std::string>() + " " + reference.at("options").dump();
}

TEST(Losses, EqualPyTorch) {
  for (const nlohmann::json& reference : test::torch_references("losses")) {
    SCOPED_TRACE(name_of(reference));
    Given given(reference);
    const ConstMatrix outputs = view(given.outputs, given.rows);
    const ConstMatrix targets = view(given.targets, given.rows);
    const double value = given.loss->evaluate(outputs, targets, &given.slopes);
    const double expected = reference.at("value");
    EXPECT_NEAR(value, expected, 1e-5 * std::abs(expected));
    test::expect_close(given.gradient, reference.at("gradient"), 1e-7);
    EXPECT_EQ(given.loss->evaluate(outputs, targets, nullptr), value);
  }
}

TEST(Losses, WithWeightsEqualPyTorchsMeanByWeights) {
  for (const nlohmann::json& reference : test::torch_references("weighted_losses")) {
    SCOPED_TRACE(name_of(reference));
    Given given(reference);
    const ConstMatrix outputs = view(given.outputs, given.rows);
    const ConstMatrix targets = view(given.targets, given.rows);
    const auto values = reference.at("weights").get<std::vector<Scalar>>();
    const SampleWeights weights{values};
    const double value = evaluate_weighted(*given.loss, outputs, targets, weights, &given.slopes);
    const double expected = reference.at("value"), weight = weights.sum(given.rows);
    EXPECT_NEAR(value / weight, expected, 1e-5 * std::abs(expected));
    for (Scalar& slope : given.gradient) slope /= static_cast<Scalar>(weight);
    test::expect_close(given.gradient, reference.at("gradient"), 1e-7);
    EXPECT_EQ(evaluate_weighted(*given.loss, outputs, targets, weights, nullptr), value);
  }
}

// The loss of one sample in double, and its derivative.
double softmax_loss(const std::vector<Scalar>& outputs, std::size_t target, double smoothing,
                    std::vector<double>& slopes) {
  const double largest = *std::ranges::max_element(outputs);
  const auto classes = static_cast<double>(outputs.size());
  double sum = 0;
  for (const Scalar x : outputs) sum += std::exp(static_cast<double>(x) - largest);
  const double log_sum = largest + std::log(sum);
  double loss = 0;
  slopes.clear();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double wanted = smoothing / classes + (i == target ? 1 - smoothing : 0);
    const double log_share = static_cast<double>(outputs[i]) - log_sum;
    loss -= wanted * log_share;
    slopes.push_back(std::exp(log_share) - wanted);
  }
  return loss;
}

// Rows are reduced in lanes: the largest output may be in any of them, and beyond the last full ones. It is
// so large that no other number may be taken for it.
TEST(Losses, SoftmaxFindsTheLargestOutputWhereverItIs) {
  for (std::size_t classes = 1; classes <= 50; ++classes)
    for (std::size_t place = 0; place < classes; ++place) {
      std::vector<Scalar> outputs(classes);
      for (std::size_t i = 0; i < classes; ++i) outputs[i] = static_cast<Scalar>(i % 5) * 0.5F - 300;
      outputs[place] = 200;
      const std::size_t target = (place + classes / 2) % classes;
      const double smoothing = place % 2 == 0 ? 0.1 : 0;
      const auto loss =
          find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({.label_smoothing = smoothing});
      std::vector<double> slopes;
      const double expected = softmax_loss(outputs, target, smoothing, slopes);
      const std::vector<Scalar> targets{static_cast<Scalar>(target)};
      std::vector<Scalar> gradient(classes);
      Matrix found = as_matrix(std::span(gradient), 1, static_cast<Index>(classes));
      const double value = loss->evaluate(view(outputs, 1), view(targets, 1), &found);
      EXPECT_NEAR(value, expected, 1e-6 * std::max(1.0, expected)) << place << " of " << classes;
      for (std::size_t i = 0; i < classes; ++i) EXPECT_NEAR(gradient[i], slopes[i], 1e-6);
    }
}

TEST(Losses, EveryOneHasAReference) {
  const nlohmann::json references = test::torch_references("losses");
  for (const LossEntry& entry : loss_catalog()) {
    const auto names_it = [&](const nlohmann::json& reference) { return reference.at("loss") == entry.name; };
    EXPECT_TRUE(std::ranges::any_of(references, names_it)) << entry.name;
  }
}

TEST(Losses, QuantilesStandInRisingOrder) {
  const LossEntry& entry = find_entry(loss_catalog(), "loss", "quantile");
  const auto refusal = [&](const std::vector<double>& levels) {
    LossOptions options;
    options.quantiles = levels;
    return test::error_text<ConfigError>([&] { entry.make(options); });
  };
  EXPECT_EQ(refusal({0.9, 0.5, 0.1, 0.5}),
            "train.quantiles: levels stand in rising order, each once; found [0.9, 0.5, 0.1, 0.5], expected "
            "[0.1, 0.5, 0.9]: the outputs of the model are in this order");
  test::expect_parts(refusal({}), {"train.quantiles", "no level", "[0.1, 0.5, 0.9]"});
}

TEST(Losses, AFocalGammaOfZeroIsCrossEntropy) {
  LossOptions options;
  options.focal_gamma = 0;
  const std::vector<Scalar> outputs{0.5F, -3, 2, 40, 0, -40};
  for (const auto& [focal, plain] : {std::pair{"binary_focal", "binary_cross_entropy"},
                                     std::pair{"softmax_focal", "softmax_cross_entropy"}}) {
    const bool binary = std::string(focal) == "binary_focal";
    const std::vector<Scalar> targets =
        binary ? std::vector<Scalar>{1, 0, 1, 1, 0, 0} : std::vector<Scalar>{1, 0};
    std::vector<Scalar> gradient(6), expected(6);
    Matrix slopes = as_matrix(std::span(gradient), 2, 3);
    Matrix expected_slopes = as_matrix(std::span(expected), 2, 3);
    const double value = find_entry(loss_catalog(), "loss", focal)
                             .make(options)
                             ->evaluate(view(outputs, 2), view(targets, 2), &slopes);
    EXPECT_NEAR(value,
                find_entry(loss_catalog(), "loss", plain)
                    .make(options)
                    ->evaluate(view(outputs, 2), view(targets, 2), &expected_slopes),
                1e-5);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(gradient[i], expected[i], 1e-6) << focal << " " << i;
  }
}

// Zeros have no direction, so nothing is learned from them; nothing is divided by zero either.
TEST(Losses, RowsWithoutDirectionHaveACosineDistanceOfOneAndNoGradient) {
  const auto loss = find_entry(loss_catalog(), "loss", "cosine_distance").make({});
  std::vector<Scalar> gradient(4, 99);
  Matrix slopes = as_matrix(std::span(gradient), 2, 2);
  const std::vector<Scalar> outputs{0, 0, 3, 4}, targets{1, 2, 0, 0};
  EXPECT_EQ(loss->evaluate(view(outputs, 2), view(targets, 2), &slopes), 2);
  EXPECT_EQ(std::vector<Scalar>(gradient.begin() + 2, gradient.end()), (std::vector<Scalar>{0, 0}));
  for (const Scalar slope : gradient) EXPECT_EQ(slope, 0);
}

TEST(Losses, AnUnknownNameSuggestsTheNearest) {
  test::expect_parts(
      test::error_text<ConfigError>([] { find_entry(loss_catalog(), "loss", "softmax_crossentropy"); }),
      {"did you mean 'softmax_cross_entropy'?"});
}

}  // namespace lockstep::losses_test
