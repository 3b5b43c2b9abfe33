// Which evaluation of a run is the best one: the direction of each measure, and values that are none.
#include "lockstep/train/evaluation/early_stopping.h"

#include "lockstep/base/errors.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/tiny_run.h"

namespace lockstep::test::best_measure_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An evaluation in which `name` has this value, and all other measures are the same as ever.
EvalMetrics evaluation(const std::string& name, std::optional<double> value) {
  EvalMetrics metrics;
  metrics.loss = name == "loss" ? *value : 0.5;
  metrics.accuracy = name == "accuracy" ? value : 0.5;
  for (const MetricEntry& entry : metric_catalog())
    metrics.others.push_back({entry.name, entry.name == name ? value : 0.5});
  return metrics;
}

BestEvaluation best_by(const std::string& name) {
  std::vector<std::string> metrics;
  for (const MetricEntry& entry : metric_catalog()) metrics.push_back(entry.name);
  return BestEvaluation(Measure(name, metrics, true));
}

// Errors are to be small; what counts right answers is to be large.
TEST(BestMeasure, EachMeasureHasItsDirection) {
  const std::map<std::string, bool> larger_is_better = {{"loss", false},
                                                        {"accuracy", true},
                                                        {"auc", true},
                                                        {"log_loss", false},
                                                        {"precision", true},
                                                        {"recall", true},
                                                        {"mean_squared_error", false},
                                                        {"mean_absolute_error", false},
                                                        {"r2", true},
                                                        {"pinball", false},
                                                        {"poisson_deviance", false},
                                                        {"tweedie_deviance", false},
                                                        {"gamma_deviance", false},
                                                        {"cosine_similarity", true},
                                                        {"average_precision", true},
                                                        {"brier", false},
                                                        {"ece", false},
                                                        {"f1", true},
                                                        {"mcc", true},
                                                        {"balanced_accuracy", true},
                                                        {"root_mean_squared_error", false},
                                                        {"mean_absolute_percentage_error", false},
                                                        {"spearman", true},
                                                        {"bits_per_character", false},
                                                        {"perplexity", false}};
  for (const MetricEntry& entry : metric_catalog()) EXPECT_TRUE(larger_is_better.contains(entry.name));
  for (const auto& [name, larger] : larger_is_better) {
    SCOPED_TRACE(name);
    BestEvaluation best = best_by(name);
    EXPECT_TRUE(std::isnan(best.value()));
    EXPECT_TRUE(best.improves(evaluation(name, 0.5))) << "the first";
    EXPECT_FALSE(best.improves(evaluation(name, 0.5))) << "an equal one";
    EXPECT_EQ(best.improves(evaluation(name, 0.75)), larger);
    EXPECT_EQ(best.improves(evaluation(name, 0.25)), !larger);
    EXPECT_EQ(best.value(), larger ? 0.75 : 0.25);
    EXPECT_FALSE(best.improves(evaluation(name, 0.5))) << "worse than the best, if better than the last";
    EXPECT_EQ(best.value(), larger ? 0.75 : 0.25);
  }
}

TEST(BestMeasure, AValueThatIsNoNumberIsNeverTheBest) {
  for (const std::string name : {"loss", "accuracy", "auc", "log_loss"}) {
    SCOPED_TRACE(name);
    BestEvaluation best = best_by(name);
    for (const double value : {kNaN, kInfinity, -kInfinity})
      EXPECT_FALSE(best.improves(evaluation(name, value)));
    EXPECT_TRUE(std::isnan(best.value()));
    EXPECT_TRUE(best.improves(evaluation(name, 0.5)));
    for (const double value : {kNaN, kInfinity, -kInfinity})
      EXPECT_FALSE(best.improves(evaluation(name, value)));
    EXPECT_EQ(best.value(), 0.5);
  }
}

TEST(BestMeasure, AnUndefinedValueIsNeverTheBest) {
  BestEvaluation best = best_by("auc");
  EXPECT_FALSE(best.improves(evaluation("auc", std::nullopt)));
  EXPECT_TRUE(std::isnan(best.value()));
  EXPECT_TRUE(best.improves(evaluation("auc", 0.1)));
}

TEST(BestMeasure, AResumedRunComparesWithTheBestBefore) {
  BestEvaluation best = best_by("auc");
  best.state()[0] = 0.6;
  EXPECT_FALSE(best.improves(evaluation("auc", 0.55)));
  EXPECT_TRUE(best.improves(evaluation("auc", 0.65)));
}

TEST(BestMeasure, OnlyWhatIsMeasuredCanBeNamed) {
  expect_parts(error_text<ConfigError>([] { Measure("auc", {"recall"}, true); }),
               {"train.early_stopping_metric", "'auc'", "'loss', 'accuracy', 'recall'", "eval.metrics"});
  expect_parts(error_text<ConfigError>([] { Measure("accuracy", {}, false); }), {"'accuracy'", "'loss'"});
}

// The test set, on which the last model of this run is better than any was on the other, only reports.
TEST(BestCheckpoint, IsTheOneThatTheValidationSetChooses) {
  const TemporaryDirectory directory;
  Config config = tiny_config();
  config.data.synthetic.validation_rows = 20;
  config.schedule.lr = 0.3;
  config.train.epochs = 6;
  config.checkpoint.dir = directory.path();
  config.checkpoint.every = "never";
  config.train.keep = "best";
  const TinyResult result = train_tiny_alone(config);
  const std::vector<EvalMetrics>& evaluations = result.evaluations;
  ASSERT_EQ(evaluations.size(), 7U);
  ASSERT_EQ(evaluations.back().split, Split::kTest);
  const auto best =
      std::ranges::min_element(evaluations.begin(), evaluations.end() - 1, {}, &EvalMetrics::loss);
  ASSERT_LT(evaluations.back().loss, best->loss);
  ASSERT_LT(best->progress.steps, result.training.progress.steps);
  EXPECT_EQ(CheckpointDirectory(config.checkpoint.dir).best(), best->progress.steps);
}

}  // namespace lockstep::test::best_measure_test
