// When a run ends early: what counts as better, how long it may take, and what a resumed run remembers.
#include "lockstep/train/evaluation/early_stopping.h"

#include "lockstep/base/errors.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/tiny_run.h"

namespace lockstep::early_stopping_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// After `steps` steps of 10 samples, 4 to an epoch.
EvalMetrics evaluation(Index steps, double loss) {
  EvalMetrics metrics;
  metrics.loss = loss;
  metrics.accuracy = 1 - loss;
  metrics.progress = {.steps = steps, .samples = 10 * steps, .epochs = static_cast<double>(steps) / 4};
  return metrics;
}

EarlyStopping stopping(const std::string& patience, double least = 0, const std::string& measure = "loss") {
  return {Measure(measure, {}, true), Patience("train.early_stopping", patience), least};
}

// The number of steps after which it ends, with an evaluation each four steps; 0: it does not.
Index end_of(EarlyStopping early, const std::vector<double>& losses) {
  for (Index i = 0; const double loss : losses) {
    i += 4;
    early.look(evaluation(i, loss));
    if (early.is_due()) return i;
  }
  return 0;
}

TEST(EarlyStopping, CountsTheTimeSinceTheBestInEachUnit) {
  const std::vector<double> losses{0.5,  0.4,  0.45, 0.3, 0.35,
                                   0.31, 0.32, 0.33, 0.2};  // best of the first 8: step 16
  EXPECT_EQ(end_of(stopping("1 evaluation"), losses), 12) << "the third is worse than the second";
  EXPECT_EQ(end_of(stopping("2 evaluations"), losses), 24);
  EXPECT_EQ(end_of(stopping("4 evaluations"), losses), 32);
  EXPECT_EQ(end_of(stopping("5 evaluations"), losses), 0) << "the ninth is better";
  EXPECT_EQ(end_of(stopping("2 epochs"), losses), 24);
  EXPECT_EQ(end_of(stopping("2.5 epochs"), losses), 28);
  EXPECT_EQ(end_of(stopping("8 steps"), losses), 24);
  EXPECT_EQ(end_of(stopping("9 steps"), losses), 28);
  EXPECT_EQ(end_of(stopping("120 samples"), losses), 28);
  EXPECT_EQ(end_of(stopping("121 samples"), losses), 32);
}

// 0.3 - 0.2 is a little less than 0.1 in doubles.
TEST(EarlyStopping, AnEpochIsOverThoughRoundingTakesAwayALittle) {
  const Patience epochs("train.early_stopping", "0.1 epochs");
  EXPECT_TRUE(epochs.is_over({.epochs = 0.2}, {.epochs = 0.3}, 1));
  EXPECT_TRUE(epochs.is_over({.epochs = 0.2}, {.epochs = 0.31}, 1));
  EXPECT_FALSE(epochs.is_over({.epochs = 0.2}, {.epochs = 0.29999}, 1));
  EXPECT_FALSE(Patience("train.early_stopping", "1000 epochs").is_over({}, {.epochs = 999.999}, 1));
  const Patience steps("train.early_stopping", "1000000 steps");
  EXPECT_TRUE(steps.is_over({.steps = 5}, {.steps = 1'000'005}, 1));
  EXPECT_FALSE(steps.is_over({.steps = 5}, {.steps = 1'000'004}, 1));
  const Patience evaluations("train.early_stopping", "3 evaluations");
  EXPECT_TRUE(evaluations.is_over({}, {}, 3));
  EXPECT_FALSE(evaluations.is_over({}, {.steps = 100, .samples = 100, .epochs = 100}, 2));
}

TEST(EarlyStopping, ALittleBetterIsNotBetter) {
  const std::vector<double> losses{0.5, 0.495, 0.49, 0.44, 0.43, 0.42};
  EXPECT_EQ(end_of(stopping("2 evaluations", 0.05), losses), 12) << "0.49 is 0.01 below 0.5";
  EXPECT_EQ(end_of(stopping("3 evaluations", 0.05), losses), 0) << "0.44 is 0.06 below 0.5";
  EXPECT_EQ(end_of(stopping("2 evaluations"), losses), 0);
  // An accuracy is to rise.
  EXPECT_EQ(end_of(stopping("2 evaluations", 0.05, "accuracy"), losses), 12);
  EXPECT_EQ(end_of(stopping("2 evaluations", 0, "accuracy"), losses), 0);
}

TEST(EarlyStopping, WithoutANumberItEndsToo) {
  EXPECT_EQ(end_of(stopping("2 evaluations"), {kNaN, kNaN, kNaN}), 8);
  EXPECT_EQ(end_of(stopping("2 epochs"), {kNaN, kNaN, kNaN}), 8) << "counted from the start of the run";
  EXPECT_EQ(end_of(stopping("2 evaluations"), {0.5, kNaN, 0.4, kNaN, kNaN}), 20);
  EarlyStopping early = stopping("1 evaluation");
  early.look(evaluation(4, kNaN));
  test::expect_parts(early.describe(), {"no better loss", "1 evaluation", "never was a number"});
}

TEST(EarlyStopping, AResumedRunCountsOn) {
  EarlyStopping before = stopping("2 evaluations");
  before.look(evaluation(4, 0.5));
  before.look(evaluation(8, 0.6));
  EarlyStopping after = stopping("2 evaluations");
  std::ranges::copy(before.state(), after.state().begin());
  after.look(evaluation(8, 0.6));
  EXPECT_FALSE(after.is_due()) << "the evaluation is the same, made again";
  after.look(evaluation(12, 0.6));
  EXPECT_TRUE(after.is_due());
  test::expect_parts(after.describe(), {"0.5", "after step 4"});
  // With more patience it goes on where it has ended.
  EarlyStopping longer = stopping("3 evaluations");
  std::ranges::copy(after.state(), longer.state().begin());
  EXPECT_FALSE(longer.is_due());
  longer.look(evaluation(16, 0.6));
  EXPECT_TRUE(longer.is_due());
}

TEST(Patience, SaysWhatIsWrongWithIt) {
  const auto error = [](const std::string& text) {
    return test::error_text<ConfigError>([&] { Patience("train.early_stopping", text); });
  };
  test::expect_parts(error("5"), {"train.early_stopping", "'5'", "unit is missing", "'5 evaluations'"});
  test::expect_parts(error("five epochs"), {"'five epochs'", "start with a number"});
  test::expect_parts(error("5 years"), {"the unit is unknown", "evaluations"});
  test::expect_parts(error("1.5 evaluations"), {"train.early_stopping"});
  test::expect_parts(error("5 evaluationss"), {"the unit is unknown"});
  test::expect_parts(error("x evaluations"), {"train.early_stopping"});
  for (const char* none : {"0 epochs", "0 evaluations", "0 steps"})
    test::expect_parts(error(none), {none, "no time at all"});
}

// The trained model: the run ends where the rule says, and the test set is evaluated with the best weights.
TEST(EarlyStopping, EndsATrainingAndTestsTheBestWeights) {
  const test::TemporaryDirectory directory;
  Config config = test::tiny_config();
  config.data.synthetic.validation_rows = 40;
  config.data.synthetic.noise = 4;
  config.schedule.lr = 0.5;
  config.train.epochs = 30;
  config.train.keep = "best";
  config.train.early_stopping = "3 evaluations";
  config.checkpoint.dir = directory.path();
  config.checkpoint.every = "never";
  const test::TinyResult result = test::train_tiny_alone(config);
  const std::vector<EvalMetrics>& all = result.evaluations;
  ASSERT_GT(all.size(), 4U);
  ASSERT_LT(all.size(), 30U) << "it never ended early";
  const auto last = all.end() - 2;
  EXPECT_EQ(last->split, Split::kValidation);
  EXPECT_EQ(last->progress.steps, result.training.progress.steps);
  const auto best = std::ranges::min_element(all.begin(), all.end() - 1, {}, &EvalMetrics::loss);
  EXPECT_EQ(last - best, 3);
  ASSERT_TRUE(result.training.best.has_value());
  EXPECT_EQ(result.training.best->value, best->loss);
  EXPECT_EQ(result.training.best->progress.steps, best->progress.steps);
  EXPECT_EQ(all.back().split, Split::kTest);
  EXPECT_EQ(all.back().progress.steps, best->progress.steps);
  // Beside the checkpoint of the best weights there is one of the end, from which a longer run goes on.
  EXPECT_EQ(CheckpointDirectory(directory.path()).steps(),
            (std::vector<Index>{result.training.progress.steps, best->progress.steps}));
  // A run of just so many steps has these weights at its end.
  config.train.early_stopping = "";
  config.train.keep = "last";
  config.train.epochs = 0;
  config.train.steps = best->progress.steps;
  config.checkpoint.dir = "";
  const test::TinyResult until_best = test::train_tiny_alone(config);
  EXPECT_EQ(until_best.evaluations.back().loss, all.back().loss) << "of the test set";
  EXPECT_TRUE(std::ranges::equal(until_best.weights,
                                 result.training.best_weights.span().first(until_best.weights.size())));
}

}  // namespace lockstep::early_stopping_test
