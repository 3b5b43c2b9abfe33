#include "lockstep/train/evaluation/learning.h"

#include "lockstep/base/catalog.h"
#include "support/error_text.h"

namespace lockstep::learning_test {

std::unique_ptr<Loss> loss_called(const std::string& name, const LossOptions& options = {}) {
  return find_entry(loss_catalog(), "loss", name).make(options);
}

Guess guess(const std::string& loss, Index outputs, const TargetSample& targets,
            const LossOptions& options = {}) {
  return best_guess(*loss_called(loss, options), outputs, targets).value();
}

// The weight of a record stands behind its targets.
const TargetSample kThreeClasses{.columns = 1, .numbers = {0, 1, 0, 1, 1, 1, 2, 2}};
const TargetSample kNumbers{.columns = 1, .numbers = {1, 1, 2, 1, 6, 1, 3, 1}};

TEST(Guess, IsByTheSharesOfTheClasses) {
  const Guess classes = guess("softmax_cross_entropy", 3, kThreeClasses);
  EXPECT_NEAR(classes.loss, 0.8 * std::log(2.5) + 0.2 * std::log(5), 1e-6) << "two fifths, one and two";
  EXPECT_NEAR(*classes.accuracy, 0.4, 1e-6);
  EXPECT_NEAR(guess("softmax_cross_entropy", 5, kThreeClasses).loss, classes.loss, 1e-4);
  const TargetSample rows{.columns = 2, .numbers = {0.75F, 0.25F, 1, 0.25F, 0.75F, 1}};
  EXPECT_NEAR(guess("softmax_cross_entropy", 2, rows).loss, std::log(2), 1e-6) << "rows of probabilities";
  const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
  const TargetSample answers{.columns = 2, .numbers = {1, 0, 1, 0, nan, 1, 0, 0, 1, 0, 1, 1}};
  const Guess yes = guess("binary_cross_entropy", 2, answers);
  const double first = (std::log(4) + 3 * std::log(4.0 / 3)) / 4;
  const double second = (std::log(3) + 2 * std::log(1.5)) / 3;
  EXPECT_NEAR(yes.loss, (4 * first + 3 * second) / 7, 1e-6) << "a missing target does not count";
  EXPECT_NEAR(*yes.accuracy, (0.75 + 2.0 / 3) / 2, 1e-6);
  EXPECT_NEAR(guess("multiclass_hinge", 3, kThreeClasses).loss, 1.2, 1.3) << "scores";
}

TEST(Guess, IsTheMeanOrTheQuantilesOfNumbers) {
  EXPECT_NEAR(guess("mean_squared_error", 1, kNumbers).loss, 3.5, 1e-6);
  EXPECT_NEAR(guess("mean_absolute_error", 1, kNumbers).loss, 1.5, 1e-6);
  EXPECT_FALSE(guess("mean_squared_error", 1, kNumbers).accuracy);
  EXPECT_NEAR(guess("poisson", 1, kNumbers).loss, 3 - 3 * std::log(3), 1e-6);
  LossOptions options;
  options.quantiles = {0.25, 0.75};
  EXPECT_NEAR(guess("quantile", 2, kNumbers, options).loss,
              ((1 + 2 + 5) * 0.25 + (3 * 0.75 + 0.5 + 0.25)) / 8, 1e-6);
  EXPECT_FALSE(best_guess(*loss_called("poisson"), 1, {.columns = 1}));
}

TEST(LabelDoubt, NamesALabelFarFromOneAndTheLineThatScalesIt) {
  const std::vector<std::string> names{"rooms", "price"};
  const TargetSample far{.columns = 2, .numbers = {1, 2e5F, 1, 3, 4e5F, 1}};
  test::expect_parts(doubt_label(TargetKind::kValue, far, names),
                     {"label 'price' is far from 1 (mean 3e+05, deviation 1e+05)",
                      "columns = [\"price: standard\"] in [data]"});
  test::expect_parts(doubt_label(TargetKind::kValue, far, {}), {"target 1", "(target - 3e+05) / 1e+05"});
  EXPECT_EQ(doubt_label(TargetKind::kValue, kNumbers, {}), "");
  EXPECT_EQ(doubt_label({TargetKind::kValue, Link::kLog}, far, names), "") << "learned as a logarithm";
  const TargetSample small{.columns = 1, .numbers = {1e-4F, 1, 3e-4F, 1}};
  EXPECT_NE(doubt_label(TargetKind::kValue, small, {}), "");
}

EvalMetrics evaluated(double loss, double accuracy) {
  EvalMetrics metrics;
  metrics.split = Split::kValidation;
  metrics.loss = loss;
  metrics.accuracy = accuracy;
  return metrics;
}

// `first` falls or rises to `last` over 100 steps, with some noise.
StepLosses course(double first, double last, int steps = 100) {
  StepLosses losses;
  for (int i = 0; i < steps; ++i)
    losses.add(first + (last - first) * i / (steps - 1) + 0.01 * first * std::sin(7.0 * i));
  return losses;
}

struct Case {
  StepLosses losses = {};
  std::optional<EvalMetrics> evaluation = {};
  std::string label = {};
  Index steps = 500;
  double lr = 7;
};

std::string doubt(const Case& tried) {
  return doubt_learning({.evaluation = tried.evaluation,
                         .guess = Guess{.loss = 2.3, .accuracy = 0.1},
                         .losses = tried.losses,
                         .steps = tried.steps,
                         .label = tried.label,
                         .lr = tried.lr});
}

TEST(LearningDoubt, NamesTheCause) {
  test::expect_parts(doubt({.losses = course(2.4, 2.4), .evaluation = evaluated(2.4, 0.1)}),
                     {"validation loss ends at 2.4, and the best constant guess has 2.3",
                      "the loss of the steps stayed near 2.4", "train.lr = 7 is likely too low"});
  test::expect_parts(doubt({.losses = course(2.4, 1e9), .evaluation = evaluated(1e9, 0.1)}),
                     {"1e+09", "train.lr = 7 is likely too high"});
  test::expect_parts(doubt({.losses = course(2.4, 2.4)}), {"the training loss ends at 2.4", "too low"});
  test::expect_parts(doubt({.losses = course(2.2, 2.2), .evaluation = evaluated(2.2, 0.2), .lr = 1e-9}),
                     {"the training loss stays at 2.2", "train.lr = 1e-09 is likely too low"});
  test::expect_parts(doubt({.losses = course(2.4, 2.4), .evaluation = evaluated(2.4, 0.1), .label = "far"}),
                     {"Likely cause: far"});
  test::expect_parts(doubt({.losses = course(0.3, 0.9), .evaluation = evaluated(0.9, 0.7)}),
                     {"the training loss ends at ", "and began with 0.3", "too high"});
  test::expect_parts(doubt({.losses = course(2.4, 0.1), .evaluation = evaluated(2.9, 0.1)}), {"by heart"});
}

TEST(LearningDoubt, IsSilentOfATrainingThatLearns) {
  EXPECT_EQ(doubt({.losses = course(2.4, 1), .evaluation = evaluated(1, 0.8)}), "");
  EXPECT_EQ(doubt({.losses = course(2.4, 1)}), "");
  EXPECT_EQ(doubt({.losses = course(2.4, 0.01), .evaluation = evaluated(2.6, 0.8)}), "") << "too sure of it";
  EXPECT_EQ(doubt({.losses = course(0.31, 0.3), .evaluation = evaluated(0.3, 0.9)}), "") << "it goes on";
  EXPECT_EQ(doubt({.losses = course(4, 2.5, 30), .evaluation = evaluated(2.5, 0.1), .steps = 30}), "")
      << "too short to tell";
  EXPECT_EQ(doubt({.losses = course(0.3, 0.9), .evaluation = evaluated(0.05, 0.9)}), "")
      << "the kept weights are better than those of the first steps";
  EXPECT_EQ(doubt({.losses = course(1e-6, 1e-4), .evaluation = evaluated(1e-4, 1)}), "") << "all are right";
  StepLosses chance;  // of batches of one record
  for (int i = 0; i < 100; ++i) chance.add(i == 0 ? 0.01 : i < 10 ? 30 : 0.8);
  EXPECT_EQ(doubt({.losses = chance}), "") << "the first record was easy";
}

// What a short run says has to be true of its losses, whose first and last steps may lie close together.
TEST(LearningDoubt, IsTrueOfShortRuns) {
  StepLosses at_once;  // falls in its first three steps, and is constant then
  for (int i = 0; i < 59; ++i) at_once.add(i < 3 ? 9.0 - 2 * i : 2.5);
  EXPECT_EQ(doubt({.losses = at_once, .evaluation = evaluated(2.5, 0.1), .steps = 59}), "");
  for (const int steps : {3, 10, 19, 20, 59, 60, 61}) {
    SCOPED_TRACE(steps);
    const auto doubt_of = [steps](double first, double last) {
      return doubt(
          {.losses = course(first, last, steps), .evaluation = evaluated(last, 0.1), .steps = steps});
    };
    EXPECT_EQ(doubt_of(4, 2.5), "");
    const bool long_enough = steps >= 20;
    const auto expect = [long_enough](const std::string& text, const std::string& cause) {
      test::expect_parts(text, {long_enough ? cause : ""});
      EXPECT_EQ(text.empty(), !long_enough);
    };
    expect(doubt_of(2.4, 2.4), "the loss of the steps stayed near 2.4");
    expect(doubt_of(2.4, 8), "the loss of the steps rose");
  }
}

}  // namespace lockstep::learning_test
