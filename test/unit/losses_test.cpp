#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/loss.h"
#include "support/torch_references.h"

namespace lockstep {
namespace {

LossOptions read_options(const nlohmann::json& given) {
  LossOptions options;
  options.label_smoothing = given.value("label_smoothing", options.label_smoothing);
  options.huber_delta = given.value("huber_delta", options.huber_delta);
  return options;
}

ConstMatrix view(const std::vector<Scalar>& values, Index rows) {
  return as_matrix(std::span(values), rows, static_cast<Index>(values.size()) / rows);
}

TEST(Losses, EqualPyTorch) {
  for (const nlohmann::json& reference : test::torch_references("losses")) {
    const std::string name = reference.at("loss");
    SCOPED_TRACE(name + " " + reference.at("options").dump());
    const auto loss = find_entry(loss_catalog(), "loss", name).make(read_options(reference.at("options")));
    const Index rows = reference.at("rows");
    const auto outputs = reference.at("outputs").get<std::vector<Scalar>>();
    const auto targets = reference.at("targets").get<std::vector<Scalar>>();
    std::vector<Scalar> gradient(outputs.size(), 99);
    Matrix gradient_view = as_matrix(std::span(gradient), rows, static_cast<Index>(outputs.size()) / rows);

    const double value = loss->evaluate(view(outputs, rows), view(targets, rows), &gradient_view);
    const double expected = reference.at("value");
    EXPECT_NEAR(value, expected, 1e-5 * expected);
    test::expect_close(gradient, reference.at("gradient"), 1e-7);
    EXPECT_EQ(loss->evaluate(view(outputs, rows), view(targets, rows), nullptr), value);
  }
}

TEST(Losses, WithWeightsEqualPyTorchsMeanByWeights) {
  for (const nlohmann::json& reference : test::torch_references("weighted_losses")) {
    const std::string name = reference.at("loss");
    SCOPED_TRACE(name + " " + reference.at("options").dump());
    const auto loss = find_entry(loss_catalog(), "loss", name).make(read_options(reference.at("options")));
    const Index rows = reference.at("rows");
    const auto outputs = reference.at("outputs").get<std::vector<Scalar>>();
    const auto targets = reference.at("targets").get<std::vector<Scalar>>();
    const auto values = reference.at("weights").get<std::vector<Scalar>>();
    const SampleWeights weights{values};
    std::vector<Scalar> gradient(outputs.size(), 99);
    Matrix gradient_view = as_matrix(std::span(gradient), rows, static_cast<Index>(outputs.size()) / rows);

    const double value =
        evaluate_weighted(*loss, view(outputs, rows), view(targets, rows), weights, &gradient_view);
    const double expected = reference.at("value");
    EXPECT_NEAR(value / weights.sum(rows), expected, 1e-5 * expected);
    for (Scalar& slope : gradient) slope /= static_cast<Scalar>(weights.sum(rows));
    test::expect_close(gradient, reference.at("gradient"), 1e-7);
    EXPECT_EQ(evaluate_weighted(*loss, view(outputs, rows), view(targets, rows), weights, nullptr), value);
  }
}

TEST(Losses, EveryOneHasAReference) {
  const nlohmann::json references = test::torch_references("losses");
  for (const LossEntry& entry : loss_catalog()) {
    const auto names_it = [&](const nlohmann::json& reference) { return reference.at("loss") == entry.name; };
    EXPECT_TRUE(std::ranges::any_of(references, names_it)) << entry.name;
  }
}

TEST(Losses, AnUnknownNameSuggestsTheNearest) {
  try {
    find_entry(loss_catalog(), "loss", "softmax_crossentropy");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what()).find("did you mean 'softmax_cross_entropy'?") != std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep
