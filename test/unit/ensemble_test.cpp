// An ensemble that shares weights: the mean of the members' losses, and of their predictions.
#include "lockstep/nn/loss.h"

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"
#include "support/seed.h"

namespace lockstep::ensemble_test {

constexpr Index kMembers = 3;
constexpr Index kRows = 4;

// What a model of heads puts out for a batch: that of its members, and the outputs.
struct Outputs {
  Index columns;
  std::vector<double> members, joined;
  double member(Index row, Index m, Index i) const { return at(members, (row * kMembers + m) * columns + i); }
  double output(Index row, Index i) const { return at(joined, row * columns + i); }
};

Outputs outputs_of(Link link, Index columns) {
  const Model model({.layers = "tabm(3) tabm_heads(" + std::to_string(columns) + ")"}, {{5}}, link);
  EXPECT_EQ(model.members(), kMembers);
  EXPECT_EQ(model.output(), (Shape{{columns}}));
  std::vector<Scalar> weights = test::random_values(model.layout().size, 1, 0, 2);
  const std::vector<Scalar> x = test::random_values(kRows * 5, 2, 0, 2);
  Workspace workspace(model, kRows, ActivationRetention::kForTraining);
  const ConstMatrix y = workspace.forward(
      {.values = {.weights = weights, .state = {}}, .x = ConstMatrix(x.data(), kRows, 5), .batch = {}});
  const ConstMatrix trained = workspace.trained_outputs();
  EXPECT_EQ(trained.cols(), kMembers * columns);
  return {.columns = columns,
          .members = {trained.data(), trained.data() + trained.size()},
          .joined = {y.data(), y.data() + y.size()}};
}

TEST(Ensemble, OutputsOfNumbersAreTheMeanOfTheMembers) {
  const Outputs found = outputs_of(Link::kIdentity, 2);
  for (Index row = 0; row < kRows; ++row)
    for (Index i = 0; i < 2; ++i) {
      const double mean = (found.member(row, 0, i) + found.member(row, 1, i) + found.member(row, 2, i)) / 3;
      EXPECT_NEAR(found.output(row, i), mean, 1e-5);
    }
}

TEST(Ensemble, ProbabilitiesAreTheMeanOfThoseOfTheMembers) {
  const Outputs classes = outputs_of(Link::kSoftmax, 3), yes = outputs_of(Link::kLogit, 1);
  const Outputs counts = outputs_of(Link::kLog, 1);
  for (Index row = 0; row < kRows; ++row) {
    for (Index i = 0; i < 3; ++i) {
      double mean = 0;
      for (Index m = 0; m < kMembers; ++m) {
        double sum = 0;
        for (Index j = 0; j < 3; ++j) sum += std::exp(classes.member(row, m, j));
        mean += std::exp(classes.member(row, m, i)) / sum / kMembers;
      }
      EXPECT_NEAR(std::exp(classes.output(row, i)), mean, 1e-5);
    }
    double probability = 0, count = 0;
    for (Index m = 0; m < kMembers; ++m) {
      probability += 1 / (1 + std::exp(-yes.member(row, m, 0))) / kMembers;
      count += std::exp(counts.member(row, m, 0)) / kMembers;
    }
    EXPECT_NEAR(1 / (1 + std::exp(-yes.output(row, 0))), probability, 1e-5);
    EXPECT_NEAR(std::exp(counts.output(row, 0)), count, 1e-4 * count);
  }
}

TEST(Ensemble, TheLossIsTheMeanOfTheMembersLosses) {
  constexpr Index kClasses = 4;
  const auto loss = find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({});
  const std::vector<Scalar> values = test::random_values(kRows * kMembers * kClasses, 3, 0, 2),
                            classes{0, 3, 1, 2};
  const std::vector<Scalar> weighing{1, 0.5F, 2, 0};
  const ConstMatrix outputs(values.data(), kRows, kMembers * kClasses), targets(classes.data(), kRows, 1);
  for (const bool weighted : {false, true}) {
    SampleWeights weights;
    if (weighted) weights.values = weighing;
    RowMajorMatrix gradient(kRows, kMembers * kClasses);
    Matrix slopes(gradient.data(), gradient.rows(), gradient.cols());
    const double total = evaluate_members(*loss, kMembers, outputs, targets, weights, slopes);
    double expected = 0;
    for (Index m = 0; m < kMembers; ++m) {
      const RowMajorMatrix own = as_eigen(outputs).middleCols(m * kClasses, kClasses);
      RowMajorMatrix own_gradient(kRows, kClasses);
      Matrix own_slopes(own_gradient.data(), kRows, kClasses);
      expected +=
          evaluate_weighted(*loss, ConstMatrix(own.data(), kRows, kClasses), targets, weights, &own_slopes) /
          kMembers;
      const RowMajorMatrix part = gradient.middleCols(m * kClasses, kClasses);
      EXPECT_LT((part - own_gradient / Scalar{kMembers}).cwiseAbs().maxCoeff(), 1e-6);
    }
    EXPECT_NEAR(total, expected, 1e-5) << weighted;
  }
}

// More samples than a run of ops takes at a time.
TEST(Ensemble, WhatMembersPutOutIsKeptForTheWholeBatch) {
  constexpr Index kMany = 50'000;
  const Model model({.layers = "tabm(3) tabm_heads(2)"}, {{5}});
  ASSERT_LT(forward_runs(model).front().rows, kMany);
  const std::vector<Scalar> weights = test::random_values(model.layout().size, 1, 0, 2);
  const std::vector<Scalar> x = test::random_values(kMany * 5, 2, 0, 2);
  const auto outputs_of_rows = [&](Index rows) {
    Workspace workspace(model, rows, ActivationRetention::kForTraining);
    workspace.forward(
        {.values = {.weights = weights, .state = {}}, .x = ConstMatrix(x.data(), rows, 5), .batch = {}});
    const ConstMatrix outputs = workspace.trained_outputs();
    return std::vector<Scalar>(outputs.data(), outputs.data() + 6);
  };
  const std::vector<Scalar> first = outputs_of_rows(1), first_of_many = outputs_of_rows(kMany);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first_of_many[i], first[i], 1e-3) << i;
}

TEST(Ensemble, MembersStartApart) {
  const Model model({.layers = "tabm(3) tabm_dense(8) relu tabm_heads(1)"}, {{5}});
  AlignedBuffer<Scalar> weights(model.layout().size);
  initialise({&model.layout(), weights.span()}, 1, 1.0);
  const std::vector<Scalar> x(5, 1);
  Workspace workspace(model, 1, ActivationRetention::kForTraining);
  workspace.forward(
      {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(x.data(), 1, 5), .batch = {}});
  const ConstMatrix trained = workspace.trained_outputs();
  EXPECT_NE(trained(0, 0), trained(0, 1));
  EXPECT_NE(trained(0, 1), trained(0, 2));
}

TEST(Ensemble, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const std::string& layers) {
    return test::error_text<ConfigError>([&] { Model({.layers = layers}, {{5}}); });
  };
  test::expect_parts(refusal("tabm(0) tabm_heads(2)"), {"tabm(0)", "2"});
  test::expect_parts(refusal("tabm(1) tabm_heads(2)"), {"tabm(1)", "2"});
  test::expect_parts(refusal("tabm(4000) tabm_heads(2)"), {"at most 1024, found 4000"});
  test::expect_parts(refusal("tabm_dense(4) dense(2)"), {"tabm_dense(4)", "tabm(k) begins"});
  test::expect_parts(refusal("dense(4) tabm_heads(2)"), {"tabm_heads(2)", "tabm(k) begins"});
  for (const std::string layers : {"tabm_heads(2)", "tanh tabm_dense(4) flatten dense(2)"}) {
    const auto refused = [&] { Model({.layers = layers}, {{6, 5}}); };
    test::expect_parts(test::error_text<ConfigError>(refused), {"layer", "tabm_", "tabm(k) begins"});
  }
  test::expect_parts(refusal("tabm(3) tabm_heads(2) relu"), {"tabm_heads(2)", "has to be the last layer"});
  test::expect_parts(refusal("periodic(0)"), {"periodic(0)", "width"});
  test::expect_parts(refusal("periodic(4, sigma=2)"), {"sigma", "to 1, found 2"});
}

}  // namespace lockstep::ensemble_test
