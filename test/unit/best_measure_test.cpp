// Which of the evaluations of a run counts as the best.
#include "lockstep/train/best_measure.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/train/metric.h"
#include "support/error_text.h"

namespace lockstep {
namespace {

EvalMetrics with(double loss, double accuracy, std::vector<MetricValue> others = {}) {
  EvalMetrics evaluation;
  evaluation.loss = loss;
  evaluation.accuracy = accuracy;
  evaluation.others = std::move(others);
  return evaluation;
}

TEST(BestMeasure, ALossIsBestWhereItIsSmallestAndAnAccuracyWhereItIsLargest) {
  BestMeasure loss("loss", {}, true);
  BestMeasure accuracy("accuracy", {}, true);
  EXPECT_TRUE(loss.improves(with(0.5, 0.7)) && accuracy.improves(with(0.5, 0.7))) << "the first";
  EXPECT_TRUE(loss.improves(with(0.4, 0.6)));
  EXPECT_FALSE(accuracy.improves(with(0.4, 0.6)));
  EXPECT_FALSE(loss.improves(with(0.6, 0.8)));
  EXPECT_TRUE(accuracy.improves(with(0.6, 0.8)));
  EXPECT_FALSE(loss.improves(with(0.4, 0.9))) << "as good as the best is no better";
  EXPECT_EQ(loss.value(), 0.4);
  EXPECT_EQ(accuracy.value(), 0.8);
}

TEST(BestMeasure, EveryMetricGoesTheWayThatItsEntrySays) {
  for (const MetricEntry& entry : metric_catalog()) {
    BestMeasure best(entry.name, {entry.name}, true);
    const auto improves = [&](double value) {
      return best.improves(with(1, 1, {{.name = entry.name, .value = value}}));
    };
    EXPECT_TRUE(improves(0.5)) << entry.name;
    EXPECT_EQ(improves(0.4), entry.smaller_is_better) << entry.name;
    EXPECT_EQ(improves(0.6), !entry.smaller_is_better) << entry.name;
  }
  const std::set<std::string> errors{"log_loss", "mean_absolute_error", "mean_squared_error"};
  for (const MetricEntry& entry : metric_catalog()) {
    EXPECT_EQ(entry.smaller_is_better, errors.contains(entry.name)) << entry.name;
  }
}

TEST(BestMeasure, WhatIsNotDefinedIsNeverTheBest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  BestMeasure best("loss", {}, false);
  EXPECT_FALSE(best.improves(with(nan, 0)));
  EXPECT_TRUE(best.improves(with(3, 0)));
  EXPECT_FALSE(best.improves(with(nan, 0)));
  EXPECT_FALSE(best.improves(with(-std::numeric_limits<double>::infinity(), 0)));
  EXPECT_EQ(best.value(), 3);
}

TEST(BestMeasure, ARunThatGoesOnKeepsItsBest) {
  BestMeasure best("loss", {}, false);
  best.value() = 0.2;
  EXPECT_FALSE(best.improves(with(0.3, 0)));
  EXPECT_TRUE(best.improves(with(0.1, 0)));
}

TEST(BestMeasure, AnUnknownOneIsNamed) {
  test::expect_parts(test::error_text<ConfigError>([] { BestMeasure("auc", {"f1"}, false); }),
                     {"checkpoint.best", "auc", "loss", "f1"});
}

}  // namespace
}  // namespace lockstep
