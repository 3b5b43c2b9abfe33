// How often predictions of about one probability come true.
#include "lockstep/train/evaluation/metrics.h"
#include "support/common.h"

namespace lockstep::reliability_test {

using Sums = std::vector<double>;

Sums collected(TargetKind kind, const std::vector<Scalar>& outputs, const std::vector<Scalar>& targets,
               Index rows, const std::vector<Scalar>& weights = {}) {
  Sums sums(static_cast<std::size_t>(kReliabilitySums));
  const ConstMatrix y(outputs.data(), rows, std::ssize(outputs) / rows);
  const ConstMatrix t(targets.data(), rows, std::ssize(targets) / rows);
  collect_reliability(kind, {.outputs = y, .targets = t, .weights = {.values = weights}}, sums);
  return sums;
}

Scalar logit(double probability) {
  return static_cast<Scalar>(std::log(probability / (1 - probability)));
}

// A thousand probabilities, and those at both ends: each is in the bin around it.
TEST(Reliability, AProbabilityIsInTheBinAroundIt) {
  for (int i = 0; i <= 1000; ++i) {
    const double probability = i == 0 ? 0 : i == 1000 ? 1 : 0.001 * i;
    const Scalar output = i == 0 ? -200.0F : i == 1000 ? 200.0F : logit(probability);
    const auto bins = reliability_bins(collected(TargetKind::kBinary, {output}, {1}, 1));
    ASSERT_EQ(bins.size(), 1U);
    EXPECT_LE(bins[0].from, probability + 1e-6) << i;
    EXPECT_GE(bins[0].to, probability - 1e-6) << i;
    EXPECT_NEAR(bins[0].to - bins[0].from, 1.0 / 15, 1e-12);
    EXPECT_NEAR(bins[0].predicted, probability, 1e-6);
  }
}

// The least and the greatest are in the first and the last bin, and none is beside them.
TEST(Reliability, AllBinsAreThereAndNoOther) {
  std::vector<Scalar> outputs, targets;
  for (int i = 0; i < 3000; ++i) {
    outputs.push_back(logit((i + 0.5) / 3000));
    targets.push_back(i % 2 == 0 ? 1.0F : 0.0F);
  }
  const Sums sums = collected(TargetKind::kBinary, outputs, targets, 3000);
  const auto bins = reliability_bins(sums);
  ASSERT_EQ(bins.size(), 15U);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_EQ(bins[i].count, 200);
    EXPECT_NEAR(bins[i].predicted, (bins[i].from + bins[i].to) / 2, 1e-4);
    EXPECT_DOUBLE_EQ(bins[i].observed, 0.5);
  }
  // |p - 0.5| over bins whose middles are 0, 1, ..., 7 fifteenths from a half.
  EXPECT_NEAR(calibration_error(sums), 2.0 * 28 / 15 / 15, 1e-4);
}

TEST(Reliability, MeansAreWeightedAndCountsAreNot) {
  const Sums sums =
      collected(TargetKind::kBinary, {logit(0.75), logit(0.74), logit(0.1)}, {1, 0, 0}, 3, {3, 1, 4});
  const auto bins = reliability_bins(sums);
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(bins[1].count, 2);
  EXPECT_NEAR(bins[1].predicted, (3 * 0.75 + 0.74) / 4, 1e-6);
  EXPECT_NEAR(bins[1].observed, 0.75, 1e-12);
  EXPECT_NEAR(calibration_error(sums), (std::abs(3 * 0.75 + 0.74 - 3) + 4 * 0.1) / 8, 1e-6);
}

TEST(Reliability, AMissingTargetIsNoPrediction) {
  constexpr Scalar kNone = std::numeric_limits<Scalar>::quiet_NaN();
  const auto bins = reliability_bins(
      collected(TargetKind::kBinary, {logit(0.3), logit(0.9), logit(0.3), logit(0.9)}, {1, kNone, 0, 1}, 2));
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(std::tuple(bins[0].count, bins[1].count, bins[1].observed), std::tuple(2, 1, 1));
}

// Of two classes the probability of the second, of more that of the predicted one.
TEST(Reliability, OfClassesIsThatOfYesOrOfThePredictedOne) {
  const auto two = reliability_bins(collected(TargetKind::kClass, {std::log(0.8F), std::log(0.2F)}, {0}, 1));
  ASSERT_EQ(two.size(), 1U);
  EXPECT_NEAR(two[0].predicted, 0.2, 1e-6);
  EXPECT_EQ(two[0].observed, 0);
  const std::vector<Scalar> three{std::log(0.25F), std::log(0.625F), std::log(0.125F)};
  for (const Scalar label : {0.0F, 1.0F}) {
    const auto bins = reliability_bins(collected(TargetKind::kClass, three, {label}, 1));
    ASSERT_EQ(bins.size(), 1U);
    EXPECT_NEAR(bins[0].predicted, 0.625, 1e-6);
    EXPECT_EQ(bins[0].observed, double{label});
  }
}

}  // namespace lockstep::reliability_test
