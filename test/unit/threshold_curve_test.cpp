#include "lockstep/train/evaluation/threshold.h"

#include "support/ranks.h"

namespace lockstep::threshold_curve_test {

// Logits of six samples and whether they are yes: one pair of three times three is in the wrong order.
constexpr std::array<Scalar, 6> kLogits{3, 1, -0.5F, 0.5F, -1, -20};
constexpr std::array<Scalar, 6> kTargets{1, 1, 1, 0, 0, 0};

void add(ThresholdCounts& counts, Range range) {
  const ConstMatrix outputs(kLogits.data() + range.begin, range.size(), 1);
  const ConstMatrix targets(kTargets.data() + range.begin, range.size(), 1);
  counts.add({.outputs = outputs, .targets = targets});
}

TEST(ThresholdCurve, CountsWhatIsTakenForYesAtEveryThreshold) {
  test::on_ranks({1}, [](Communicator& comm) {
    ThresholdCounts counts(TargetKind::kBinary, 1);
    add(counts, {0, 6});
    const std::vector<ThresholdCurve> curves = counts.curves(comm);
    ASSERT_EQ(curves.size(), 1);
    EXPECT_EQ(curves[0].positives, 3);
    EXPECT_EQ(curves[0].negatives, 3);
    EXPECT_DOUBLE_EQ(curves[0].area, 8.0 / 9);
    ASSERT_EQ(curves[0].points.size(), 6);
    EXPECT_EQ(curves[0].points[2].true_positives, 2);
    EXPECT_EQ(curves[0].points[2].false_positives, 1);
    EXPECT_NEAR(curves[0].points[0].threshold, 1 / (1 + std::exp(-3)), 1e-7);
  });
}

// Counts are of samples, whatever they weigh: also if that is nothing.
TEST(ThresholdCurve, CountsSamplesAlikeWhateverTheyWeigh) {
  test::on_ranks({1}, [](Communicator& comm) {
    const std::array<Scalar, 6> weights{0, 0.25F, 3, 1, 0, 1};
    ThresholdCounts counts(TargetKind::kBinary, 1);
    const ConstMatrix outputs(kLogits.data(), 6, 1), targets(kTargets.data(), 6, 1);
    counts.add({.outputs = outputs, .targets = targets, .weights = {.values = weights}});
    const ThresholdCurve curve = counts.curves(comm).front();
    EXPECT_EQ(curve.positives, 3);
    EXPECT_EQ(curve.negatives, 3);
    ASSERT_EQ(curve.points.size(), 6);
    EXPECT_DOUBLE_EQ(curve.area, 8.0 / 9);
    EXPECT_LT(curve.points[5].threshold, 1e-6);
  });
}

TEST(ThresholdCurve, EachClassAndEachOutputOfYesOrNoHasItsOwn) {
  const std::array<Scalar, 12> outputs{3, 1, 0, 0, 2, 1, 1, 0, 4, 0, 1, 2};
  const std::array<Scalar, 4> classes{2, 1, 2, 2};
  const std::array<Scalar, 12> answers{1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1};
  test::on_ranks({1}, [&](Communicator& comm) {
    const ConstMatrix rows(outputs.data(), 4, 3);
    const auto positives_of = [&](TargetKind kind, const ConstMatrix& targets) {
      ThresholdCounts counts(kind, 3);
      counts.add({.outputs = rows, .targets = targets});
      std::vector<Index> positives;
      for (const ThresholdCurve& curve : counts.curves(comm)) positives.push_back(curve.positives);
      return positives;
    };
    EXPECT_EQ(positives_of(TargetKind::kClass, ConstMatrix(classes.data(), 4, 1)),
              (std::vector<Index>{0, 1, 3}));
    EXPECT_EQ(positives_of(TargetKind::kBinary, ConstMatrix(answers.data(), 4, 3)),
              (std::vector<Index>{3, 2, 1}));
  });
}

// Scores that share a bin are told apart by the area, and its point has the least of them.
TEST(ThresholdCurve, HasTheExactAreaAndThresholdsOfSamples) {
  test::on_ranks({1, 2}, [](Communicator& comm) {
    const std::array<Scalar, 4> logits{1, 1.0001F, 1.0002F, 1.0003F}, answers{1, 0, 1, 1};
    const Range mine = split_evenly(4, comm.size(), comm.rank());
    const ConstMatrix outputs(logits.data() + mine.begin, mine.size(), 1);
    const ConstMatrix targets(answers.data() + mine.begin, mine.size(), 1);
    ThresholdCounts counts(TargetKind::kBinary, 1);
    counts.add({.outputs = outputs, .targets = targets});
    const ThresholdCurve curve = counts.curves(comm).front();
    EXPECT_DOUBLE_EQ(curve.area, 2.0 / 3);
    ASSERT_EQ(curve.points.size(), 1);
    if (comm.rank() == 0) {
      EXPECT_NEAR(curve.points[0].threshold, 1 / (1 + std::exp(-1)), 1e-7);
    }
  });
}

// Scores of hinge losses are the outputs themselves, of two classes their difference.
TEST(ThresholdCurve, ComparesOutputsThatAreNoProbabilities) {
  test::on_ranks({1}, [](Communicator& comm) {
    const std::array<Scalar, 6> scores{3, 5, 0, 2, 0, 1};
    const std::array<Scalar, 2> answers{0, 1};
    const OutputForm form(TargetKind::kClass, Link::kIdentity);
    ThresholdCounts three(form, 3);
    three.add({.outputs = ConstMatrix(scores.data(), 2, 3), .targets = ConstMatrix(answers.data(), 2, 1)});
    const std::vector<ThresholdCurve> curves = three.curves(comm);
    EXPECT_EQ(std::tuple(curves[0].area, curves[0].points[0].threshold, curves[1].area), std::tuple(1, 3, 0));
    ThresholdCounts two(form, 2);
    two.add({.outputs = ConstMatrix(scores.data(), 2, 2), .targets = ConstMatrix(answers.data(), 2, 1)});
    EXPECT_EQ(two.curves(comm).front().points[0].threshold, 2);
  });
}

TEST(ThresholdCurve, LeavesOutMissingTargets) {
  test::on_ranks({1}, [](Communicator& comm) {
    const Scalar none = std::numeric_limits<Scalar>::quiet_NaN();
    const std::array<Scalar, 4> logits{1, 2, -1, 3}, answers{1, none, 0, 1};
    const ConstMatrix outputs(logits.data(), 2, 2), targets(answers.data(), 2, 2);
    ThresholdCounts counts(TargetKind::kBinary, 2);
    counts.add({.outputs = outputs, .targets = targets});
    const std::vector<ThresholdCurve> curves = counts.curves(comm);
    ASSERT_EQ(curves.size(), 2);
    EXPECT_EQ(std::tuple(curves[0].positives + curves[0].negatives, curves[1].positives, curves[1].negatives),
              std::tuple(2, 1, 0));
  });
}

// Equal scores share a point, so half of their pairs count for the area.
TEST(ThresholdCurve, CountsATieByHalf) {
  test::on_ranks({1}, [](Communicator& comm) {
    const std::array<Scalar, 4> logits{2, 2, 2, -30}, answers{1, 0, 0, 0};
    const ConstMatrix outputs(logits.data(), 4, 1), targets(answers.data(), 4, 1);
    ThresholdCounts counts(TargetKind::kBinary, 1);
    counts.add({.outputs = outputs, .targets = targets});
    const ThresholdCurve curve = counts.curves(comm).front();
    EXPECT_EQ(curve.points.size(), 2);
    EXPECT_DOUBLE_EQ(curve.area, (1 + 0.5 + 0.5) / 3);
  });
}

TEST(ThresholdCurve, IsTheSameHoweverSamplesAreSpread) {
  test::on_ranks({2}, [](Communicator& comm) {
    ThresholdCounts counts(TargetKind::kBinary, 1), other(TargetKind::kBinary, 1);
    add(counts, comm.rank() == 0 ? Range{0, 1} : Range{4, 6});
    add(other, comm.rank() == 0 ? Range{1, 4} : Range{6, 6});
    counts.add(other);
    const std::vector<ThresholdCurve> curves = counts.curves(comm);
    EXPECT_DOUBLE_EQ(curves[0].area, 8.0 / 9);
    EXPECT_EQ(curves[0].points.size(), 6);
  });
}

TEST(ThresholdCurve, ComparesAClassWithAllOthersTogether) {
  test::on_ranks({1}, [](Communicator& comm) {
    // The softmax of these is 0.5, 0.25, 0.25.
    const std::array<Scalar, 3> logits{std::log(2.0F), 0, 0};
    const std::array<Scalar, 1> target{0};
    const ConstMatrix outputs(logits.data(), 1, 3), targets(target.data(), 1, 1);
    ThresholdCounts counts(TargetKind::kClass, 3);
    counts.add({.outputs = outputs, .targets = targets});
    const std::vector<ThresholdCurve> curves = counts.curves(comm);
    ASSERT_EQ(curves.size(), 3);
    EXPECT_NEAR(curves[0].points[0].threshold, 0.5, 1e-6);
    EXPECT_NEAR(curves[2].points[0].threshold, 0.25, 1e-6);
    EXPECT_TRUE(std::isnan(curves[0].area)) << "there are no negatives";
  });
}

TEST(ThresholdCurve, IsMissingForNumbersAndForManyClasses) {
  test::on_ranks({1}, [](Communicator& comm) {
    EXPECT_TRUE(ThresholdCounts(TargetKind::kValue, 1).curves(comm).empty());
    EXPECT_TRUE(ThresholdCounts(TargetKind::kClass, kMaxCurves + 1).curves(comm).empty());
    EXPECT_EQ(ThresholdCounts(TargetKind::kClass, 2).curves(comm).size(), 1);
  });
}

}  // namespace lockstep::threshold_curve_test
