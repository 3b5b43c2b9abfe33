// Losses that do not suit the targets or the outputs: what is refused, and what is only said.
#include "lockstep/train/plan/run_plan.h"

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/train/evaluation/metrics.h"
#include "support/error_text.h"

namespace lockstep::test::fit_check_test {

constexpr const char* kSoftmax = "softmax_cross_entropy";
constexpr const char* kBinary = "binary_cross_entropy";
constexpr const char* kSquares = "mean_squared_error";

class FitCheck : public testing::Test {
 protected:
  static DatasetInfo data(Index classes, Index columns = 1) {
    DatasetInfo info{.rows = 200, .features = {{4}}, .target_columns = columns, .name = "iris.csv"};
    info.target_classes = classes;
    if (classes > 0) info.target_text = "label 'species' ('a', 'b')";
    return info;
  }
  static FitQuestion question(const DatasetInfo& info, const Model& model, const std::string& loss) {
    const auto made = find_entry(loss_catalog(), "loss", loss).make({});
    return {.data = info,
            .model = model,
            .form = made->form(),
            .loss = loss,
            .probabilities = made->takes_probabilities()};
  }
  static std::string refusal(const DatasetInfo& info, const std::string& layers, const std::string& loss) {
    const Model model({.layers = layers}, {{4}});
    return error_text<ConfigError>([&] { refuse_misfit(question(info, model, loss)); });
  }
  static std::vector<std::string> doubts(const DatasetInfo& info, const std::string& layers,
                                         const std::string& loss, Index batch = 10) {
    const Model model({.layers = layers}, {{4}});
    const FitQuestion asked = question(info, model, loss);
    refuse_misfit(asked);
    RunPlan plan;
    plan.step_batch = batch;
    plan.epoch_samples = info.rows;
    return find_doubts(asked, plan);
  }
  using Sentences = std::vector<std::string>;
};

TEST_F(FitCheck, WhatSuitsIsNeitherRefusedNorDoubted) {
  EXPECT_EQ(doubts(data(3), "dense(3)", kSoftmax), Sentences{});
  EXPECT_EQ(doubts(data(0), "dense(3)", kSoftmax), Sentences{}) << "classes that are not known yet";
  EXPECT_EQ(doubts(data(0, 3), "dense(3)", kSoftmax), Sentences{}) << "a probability of each class";
  EXPECT_EQ(doubts(data(2), "dense(1)", kBinary), Sentences{});
  EXPECT_EQ(doubts(data(0), "dense(1)", kSquares), Sentences{});
  EXPECT_EQ(doubts(data(0, 2), "dense(2) sigmoid", kSquares, 200), Sentences{});
}

TEST_F(FitCheck, NobodyHasWrittenTheLayersOfAPreset) {
  const Model model({.layers = "", .preset = "mlp", .outputs = 10}, {{4}});
  const DatasetInfo info = data(12);
  FitQuestion asked = question(info, model, kSoftmax);
  asked.preset = "model.preset 'mlp' with model.outputs = 10 (the default)";
  expect_parts(error_text<ConfigError>([&] { refuse_misfit(asked); }),
               {"has 12 classes, but model.preset 'mlp' with model.outputs = 10 (the default) puts out 10"});
}

TEST_F(FitCheck, NumbersOfClassesAreNoNumbers) {
  const std::string error = refusal(data(3), "dense(1)", kSquares);
  EXPECT_EQ(
      error,
      "label 'species' ('a', 'b') of 'iris.csv' has 3 classes, whose numbers mean nothing to train.loss "
      "'mean_squared_error': take 'softmax_cross_entropy' and a last layer with 3 outputs");
  expect_parts(refusal(data(3), "dense(1)", kBinary), {"3 classes", kBinary, kSoftmax});
  expect_parts(refusal(data(3), "dense(3)", "huber"), {"3 classes", "huber", kSoftmax});
}

TEST_F(FitCheck, OutputsAndClassesMustGoTogether) {
  EXPECT_EQ(refusal(data(3), "dense(2)", kSoftmax),
            "label 'species' ('a', 'b') of 'iris.csv' has 3 classes, but layer 0 'dense(2)' puts out 2: "
            "train.loss 'softmax_cross_entropy' needs 3 outputs");
  expect_parts(refusal(data(0), "dense(1)", kSoftmax), {"puts out 1 number", "always 0", kBinary});
  expect_parts(refusal(data(0), "dense(3)", kSquares), {"puts out 3", "3 targets", "has 1"});
  DatasetInfo one_hot = data(0, 2);
  one_hot.label_file = "y.npy";
  EXPECT_EQ(
      refusal(one_hot, "dense(3)", kSoftmax),
      "the labels in 'y.npy' have 2 columns, but train.loss 'softmax_cross_entropy' needs one, the number of "
      "the class, or 3 with the probability of each, as many as layer 0 'dense(3)' puts out: of one-hot rows "
      "numpy.argmax(y, axis=1) makes that");
}

TEST_F(FitCheck, WhatIsHardlyMeantIsSaid) {
  EXPECT_EQ(
      doubts(data(10), "dense(100)", kSoftmax),
      Sentences{"layer 0 'dense(100)' puts out 100, but 'iris.csv' has 10 classes: the other outputs are "
                "never right"});
  const Sentences sigmoid = doubts(data(2), "dense(1) sigmoid", kBinary);
  ASSERT_EQ(sigmoid.size(), 1u);
  expect_parts(sigmoid[0], {kBinary, "sigmoid", "layer 1", "leave that out"});
  const Sentences squares = doubts(data(2), "dense(1)", kSquares);
  ASSERT_EQ(squares.size(), 1u);
  expect_parts(squares[0], {"2 classes", "0 and 1", kBinary});
  const Sentences batch = doubts(data(3), "dense(3)", kSoftmax, 300);
  ASSERT_EQ(batch.size(), 1u);
  expect_parts(batch[0], {"300 samples", "the global batch", "'iris.csv' has 200"});
}

TEST_F(FitCheck, LevelsOfQuantilesHaveAnOutputForEachTarget) {
  const DatasetInfo two = data(0, 2);
  const Model model({.layers = "dense(5)"}, {{4}});
  OutputForm levels(TargetKind::kValue);
  levels.quantiles = {0.1, 0.5, 0.9};
  const auto refusal = [&](const Model& layers) {
    return error_text<ConfigError>(
        [&] { refuse_misfit({.data = two, .model = layers, .form = levels, .loss = "quantile"}); });
  };
  EXPECT_EQ(refusal(model),
            "layer 0 'dense(5)' puts out 5, but 'iris.csv' has 2 targets and train.quantiles 3 levels: "
            "train.loss 'quantile' needs 6 outputs, one for each level of each target");
  DatasetInfo beside = two;
  beside.label_file = "answers.npy";
  expect_parts(error_text<ConfigError>([&] {
                 refuse_misfit({.data = beside, .model = model, .form = levels, .loss = "quantile"});
               }),
               {"but 'answers.npy' has 2 targets"});
  const Model right({.layers = "dense(6)"}, {{4}});
  EXPECT_NO_THROW(refuse_misfit({.data = two, .model = right, .form = levels, .loss = "quantile"}));
}

TEST_F(FitCheck, ALogLinkTakesNoScaledLabel) {
  DatasetInfo scaled = data(0);
  scaled.scaled_label = "cost: log";
  EXPECT_EQ(refusal(scaled, "dense(1)", "tweedie"),
            "data.columns = [\"cost: log\"] scales a label, but train.loss 'tweedie' learns the logarithm of "
            "its mean, and needs the label as it is: leave that out, or write \"cost: none\"");
  EXPECT_EQ(doubts(scaled, "dense(1)", "huber"), Sentences{});
}

TEST_F(FitCheck, ADirectionHasSeveralNumbers) {
  expect_parts(refusal(data(0), "dense(1)", "cosine_distance"),
               {"puts out 1 number", "direction", "several columns"});
  EXPECT_EQ(doubts(data(0, 3), "dense(3)", "cosine_distance"), Sentences{});
}

TEST_F(FitCheck, ALastLayerThatKeepsALogarithmFromFallingIsDoubted) {
  const Sentences said = doubts(data(0), "dense(1) softplus", "poisson");
  ASSERT_EQ(said.size(), 1u);
  expect_parts(said[0], {"poisson", "e^output", "layer 1 'softplus'", "leave that out"});
  EXPECT_EQ(doubts(data(2), "dense(1) sigmoid", "binary_hinge"), Sentences{}) << "it takes no sigmoid itself";
}

TEST(TargetRule, OfCountsAndAmountsKnowsTheirSigns) {
  const auto rule = [](const std::string& loss) {
    return target_rule(*find_entry(loss_catalog(), "loss", loss).make({}), {{1}});
  };
  for (const char* loss : {"poisson", "tweedie"}) {
    EXPECT_TRUE(rule(loss).allows(0));
    EXPECT_FALSE(rule(loss).allows(-1e-3F));
    EXPECT_FALSE(rule(loss).allows(std::numeric_limits<Scalar>::infinity()));
    expect_parts(rule(loss).expected(), {"0 or more", "train.loss 'mean_squared_error'"});
  }
  EXPECT_FALSE(rule("gamma").allows(0));
  EXPECT_TRUE(rule("gamma").allows(1e-3F));
  expect_parts(rule("gamma").expected(), {"above 0", "'tweedie' learns zeros"});
  EXPECT_TRUE(rule("huber").allows(-1));
}

TEST(TargetRule, NotesTheLargestClassThatItAllows) {
  std::atomic<Index> largest = -1;
  const TargetRule rule{.classes = 10, .largest_class = &largest};
  for (const Scalar target : {2.0F, 7.0F, 3.0F}) EXPECT_TRUE(rule.allows(target));
  EXPECT_EQ(largest, 7);
  for (const Scalar target : {10.0F, 8.5F, -1.0F, std::numeric_limits<Scalar>::quiet_NaN()})
    EXPECT_FALSE(rule.allows(target));
  EXPECT_EQ(largest, 7);
}

std::string found_by(const TargetRule& rule, const std::vector<Scalar>& targets) {
  const std::optional<BadTarget> bad = rule.find_bad(targets);
  return bad ? fmt::format("{}: {}, expected {}", bad->position, bad->found, bad->expected) : "nothing";
}

TEST(TargetRule, LetsSomeOfSeveralTargetsBeMissing) {
  constexpr Scalar kMissing = std::numeric_limits<Scalar>::quiet_NaN();
  std::atomic<bool> any_missing = false;
  const TargetRule rule{.may_miss = true, .any_missing = &any_missing};
  EXPECT_EQ(found_by(rule, {1, -2}), "nothing");
  EXPECT_FALSE(any_missing);
  EXPECT_EQ(found_by(rule, {kMissing, kMissing}), "-1: no label, expected at least one of 2");
  EXPECT_EQ(found_by(rule, {kMissing}), "0: label nan, expected a finite number") << "the only target";
  EXPECT_FALSE(any_missing);
  EXPECT_EQ(found_by(rule, {kMissing, 3}), "nothing");
  EXPECT_TRUE(any_missing);
  EXPECT_EQ(found_by({.may_miss = false}, {kMissing, 3}), "0: label nan, expected a finite number");
  const TargetRule of_yes{.unit_interval = true, .may_miss = true};
  EXPECT_EQ(found_by(of_yes, {1, kMissing, 0}), "nothing");
  expect_parts(found_by(of_yes, {1, kMissing, 2}), {"2: label 2, expected a number from 0 to 1"});
}

TEST(TargetRule, TakesProbabilitiesThatAddUpToOne) {
  const TargetRule rule{.classes = 3};
  for (const std::vector<Scalar>& row :
       {std::vector<Scalar>{0, 1, 0}, {0.2F, 0.3F, 0.5F}, {0.333F, 0.333F, 0.333F}})
    EXPECT_EQ(found_by(rule, row), "nothing");
  EXPECT_EQ(found_by(rule, {0, 1, 1}),
            "-1: labels that add up to 2, expected the probabilities of the 3 classes, which add up to 1");
  expect_parts(found_by(rule, {0.33F, 0.33F, 0.33F}), {"add up to 0.99"});
  expect_parts(found_by(rule, {1.5F, -0.5F, 0}), {"0: label 1.5, expected a probability from 0 to 1"});
  const Scalar missing = std::numeric_limits<Scalar>::quiet_NaN();
  expect_parts(found_by(rule, {0.5F, missing, 0.5F}), {"1: label nan, expected a probability"});
}

TEST(TargetRule, TheClassOfTargetsIsTheOneThatAccuracyCounts) {
  const auto of = [](const std::vector<Scalar>& targets) { return class_of(targets); };
  for (const Index number : {0, 1, 7, 999}) EXPECT_EQ(of({static_cast<Scalar>(number)}), number);
  EXPECT_EQ(of({0.5F}), 0);
  EXPECT_EQ(of({0.51F}), 1);
  EXPECT_EQ(of({0.2F, 0.5F, 0.3F}), 1);
  EXPECT_EQ(of({0.4F, 0.4F, 0.2F}), 0) << "the first of equals";
}

}  // namespace lockstep::test::fit_check_test
