// A class for each position of a record: the loss over the positions that count, and the rows that are
// measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "lockstep/base/catalog.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/position_rows.h"

namespace lockstep {
namespace {

constexpr Index kRows = 2;
constexpr Index kPositions = 3;
constexpr Index kClasses = 2;
constexpr Scalar kMissing = std::numeric_limits<Scalar>::quiet_NaN();

// The second record has one position, and numbers behind it that mean nothing.
struct Batch {
  std::vector<Scalar> outputs{1, 2, -1, 0.5F, 0, 3, 2, -2, 50, 60, 70, 80};
  std::vector<Scalar> targets{0, 1, 1, 0, kMissing, kMissing};

  ConstMatrix rows() const { return {outputs.data(), kRows, kPositions * kClasses}; }
  ConstMatrix classes() const { return {targets.data(), kRows, kPositions}; }
};

std::unique_ptr<Loss> of_record() {
  return find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({});
}

std::unique_ptr<Loss> of_positions() {
  return over_positions(of_record(), SequenceShape{.positions = kPositions, .channels = kClasses}.shape());
}

TEST(PositionLosses, AreTheSumOverThePositionsThatCount) {
  const Batch batch;
  const auto one = of_record();
  double expected = 0;
  std::vector<Scalar> slopes(batch.outputs.size(), 0);
  for (std::size_t i = 0; i < 4; ++i) {
    Matrix slope(slopes.data() + i * kClasses, 1, kClasses);
    expected += one->evaluate({batch.outputs.data() + i * kClasses, 1, kClasses},
                              {batch.targets.data() + i, 1, 1}, &slope);
  }
  std::vector<Scalar> found(batch.outputs.size(), 9);
  Matrix gradient(found.data(), kRows, kPositions * kClasses);
  const auto loss = of_positions();
  EXPECT_NEAR(loss->evaluate(batch.rows(), batch.classes(), &gradient), expected / kPositions, 1e-6);
  EXPECT_EQ(loss->evaluate(batch.rows(), batch.classes(), nullptr),
            loss->evaluate(batch.rows(), batch.classes(), &gradient));
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], slopes[i] / static_cast<Scalar>(kPositions), 1e-7) << i;
  // What the sum is divided by: four of six positions count.
  const std::array<Scalar, kRows> present{3, 1};
  EXPECT_DOUBLE_EQ(SampleWeights({.present = present, .targets = kPositions}).sum(kRows), 4.0 / 3);
}

TEST(PositionLosses, ShowANumberThatIsNoneInThePadding) {
  Batch batch;
  batch.outputs[8] = kMissing;
  EXPECT_TRUE(std::isnan(of_positions()->evaluate(batch.rows(), batch.classes(), nullptr)));
}

TEST(PositionLosses, AreLossesOfRecordsElsewhere) {
  EXPECT_EQ(over_positions(of_record(), {{6}})->form().positions, 0);
  const auto values = over_positions(find_entry(loss_catalog(), "loss", "mean_squared_error").make({}),
                                     SequenceShape{.positions = 3}.shape());
  EXPECT_EQ(values->form().positions, 0);
  EXPECT_EQ(of_positions()->form().positions, kPositions);
  EXPECT_EQ(of_positions()->form().outputs_of_position(6), kClasses);
}

TEST(PositionRows, AreThePositionsThatCountEachWithTheWeightOfItsRecord) {
  const Batch batch;
  const std::array<Scalar, kRows> weights{1, 5};
  PositionRows positions;
  const ConstMatrix outputs = batch.rows();
  const ConstMatrix targets = batch.classes();
  positions.fill({.outputs = outputs, .targets = targets, .weights = {.values = weights}});
  const MetricRows rows = positions.rows();
  EXPECT_EQ(rows.outputs.rows(), 4);
  EXPECT_EQ(rows.outputs(3, 0), 2);
  EXPECT_EQ(rows.targets(2, 0), 1);
  EXPECT_EQ(rows.weights[3], 5);
  EXPECT_TRUE(std::ranges::equal(positions.records(), std::array<Index, 4>{0, 0, 0, 1}));
  // Classes 0, 1, 1, 0 with predictions 1, 1, 1, 0.
  EXPECT_EQ(count_correct(TargetKind::kClass, rows.outputs, rows.targets, rows.weights), 1 + 1 + 5);
}

TEST(TargetRule, OfPositionsTakesAClassForEachThatCounts) {
  const std::array<Index, 4> lengths{0, 1, 2, 3};
  const TargetRule rule = target_rule(
      *of_positions(), SequenceShape{.positions = kPositions, .channels = kClasses}.shape(), lengths);
  const std::array<Scalar, 3> targets{1, 0, 7};
  EXPECT_TRUE(rule.find_bad(targets).has_value());
  EXPECT_FALSE(rule.find_bad(rule.counted(targets, 2)).has_value());
  EXPECT_TRUE(rule.find_bad(rule.counted(targets, 3)).has_value());
}

// A window of two positions has none where a record has one: its one target is missing.
TEST(TargetRule, OfOnePositionMayMissIt) {
  const std::array<Index, 3> lengths{0, 0, 1};
  const Shape output = SequenceShape{.positions = 1, .channels = kClasses}.shape();
  const TargetRule rule = target_rule(*over_positions(of_record(), output), output, lengths);
  const std::array<Scalar, 1> target{1};
  EXPECT_EQ(rule.counted(target, 1).size(), 0U);
  EXPECT_EQ(rule.counted(target, 2).size(), 1U);
  DatasetInfo info{.features = {}, .target_columns = 1, .name = ""};
  EXPECT_FALSE(may_miss_targets(rule, info));
  info.has_lengths = true;
  EXPECT_TRUE(may_miss_targets(rule, info));
}

}  // namespace
}  // namespace lockstep
