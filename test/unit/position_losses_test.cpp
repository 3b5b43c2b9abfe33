// A class for each position of a record: the loss over those that count, and the rows that are measured.
#include "lockstep/base/catalog.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/loader.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"
#include "support/common.h"

namespace lockstep::position_losses_test {

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

// As CrossEntropyLoss(weight=...) of PyTorch: the sum of weight x loss, and the sum of the weights beside it.
TEST(PositionLosses, WeighEachPositionByItsClass) {
  const Batch batch;
  const std::array<Scalar, kClasses> of_class{1, 4};
  const auto loss = of_positions();
  loss->weigh_classes(of_class);
  double expected = 0;
  for (std::size_t i = 0; i < 4; ++i)
    expected += static_cast<double>(of_class[static_cast<std::size_t>(batch.targets[i])]) *
                of_record()->evaluate({batch.outputs.data() + i * kClasses, 1, kClasses},
                                      {batch.targets.data() + i, 1, 1}, nullptr);
  std::vector<Scalar> found(batch.outputs.size());
  Matrix gradient(found.data(), kRows, kPositions * kClasses);
  EXPECT_NEAR(loss->evaluate(batch.rows(), batch.classes(), &gradient), expected / kPositions, 1e-6);
  std::vector<Scalar> plain(batch.outputs.size());
  Matrix unweighted(plain.data(), kRows, kPositions * kClasses);
  of_positions()->evaluate(batch.rows(), batch.classes(), &unweighted);
  EXPECT_EQ(found[0], plain[0]);
  EXPECT_EQ(found[2], 4 * plain[2]);
  // Classes 0, 1, 1 and 0 weigh 9 and 1; a weight of the record itself stays what it is.
  std::vector<Scalar> labels{0, 1, 1, 2, 0, kMissing, kMissing, 3};
  Matrix columns(labels.data(), kRows, kPositions + 1);
  std::array<Scalar, kRows> weights{};
  std::array<Scalar, kRows> present{};
  const DatasetInfo info{.features = {}, .target_columns = kPositions, .weighted = true, .name = ""};
  weigh({.of_class = of_class, .of_positions = true}, info, columns, weights, present);
  EXPECT_EQ(weights, (std::array<Scalar, kRows>{2, 3}));
  EXPECT_EQ(present, (std::array<Scalar, kRows>{9, 1}));
}

TEST(PositionLosses, ShowANumberThatIsNoneInThePadding) {
  Batch batch;
  batch.outputs[8] = kMissing;
  EXPECT_TRUE(std::isnan(of_positions()->evaluate(batch.rows(), batch.classes(), nullptr)));
}

TEST(PositionLosses, AreLossesOfRecordsElsewhere) {
  EXPECT_EQ(over_positions(of_record(), {{6}})->form().positions, 0);
  const Shape output = SequenceShape{.positions = 3, .channels = 1}.shape();
  const auto of_values = [] { return find_entry(loss_catalog(), "loss", "mean_squared_error").make({}); };
  EXPECT_EQ(over_positions(of_values(), output, true)->form().positions, 0) << "columns of a table";
  EXPECT_EQ(over_positions(of_values(), output)->form().positions, 3);
  EXPECT_EQ(over_positions(of_record(), output, true)->form().positions, 3);
  EXPECT_EQ(of_positions()->form().positions, kPositions);
  EXPECT_EQ(of_positions()->form().outputs_of_position(6), kClasses);
}

TEST(PositionRows, AreThePositionsThatCountEachWithTheWeightOfItsRecord) {
  const Batch batch;
  const std::array<Scalar, kRows> weights{1, 5};
  PositionRows positions;
  const ConstMatrix outputs = batch.rows(), targets = batch.classes();
  const MetricRows records{.outputs = outputs, .targets = targets, .weights = {.values = weights}};
  positions.fill(records, kPositions);
  const MetricRows rows = positions.rows();
  EXPECT_EQ(std::tuple(rows.outputs.rows(), rows.outputs(3, 0), rows.targets(2, 0), rows.weights[3]),
            std::tuple(4, 2, 1, 5));
  EXPECT_TRUE(std::ranges::equal(positions.numbers(), std::array<Index, 4>{0, 1, 2, 3}));
  // Classes 0, 1, 1, 0 with predictions 1, 1, 1, 0.
  EXPECT_EQ(count_correct(TargetKind::kClass, rows.outputs, rows.targets, rows.weights), 1 + 1 + 5);
  const std::array<Scalar, kClasses> of_class{1, 4};
  positions.fill(records, kPositions, of_class);
  EXPECT_EQ(positions.rows().weights[2], 4);
  EXPECT_EQ(positions.rows().weights[3], 5);
}

// Two numbers for each of three positions: one has only one of them, one has none.
TEST(PositionRows, LeaveOutWhatAPositionOfSeveralTargetsLacks) {
  const std::vector<Scalar> outputs{1, 2, 3, 4, 5, 6}, targets{1, 0, kMissing, kMissing, kMissing, 5};
  const ConstMatrix all(outputs.data(), 1, 6), right(targets.data(), 1, 6);
  PositionRows positions;
  positions.fill({.outputs = all, .targets = right}, kPositions);
  const MetricRows rows = positions.rows();
  ASSERT_EQ(rows.outputs.rows(), 2);
  EXPECT_TRUE(std::ranges::equal(positions.numbers(), std::array<Index, 2>{0, 2}));
  EXPECT_EQ(rows.weights.sum(2), 1.5);
  const auto loss = over_positions(find_entry(loss_catalog(), "loss", "mean_squared_error").make({}),
                                   SequenceShape{.positions = kPositions, .channels = 2}.shape());
  // Three targets are there, of which one is 2 off and one 1.
  EXPECT_DOUBLE_EQ(loss->evaluate(all, right, nullptr) * kPositions,
                   evaluate_weighted(loss->of_position(), rows.outputs, rows.targets, rows.weights, nullptr));
  EXPECT_DOUBLE_EQ(loss->evaluate(all, right, nullptr) * kPositions, (4 + 1) / 2.0);
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

}  // namespace lockstep::position_losses_test
