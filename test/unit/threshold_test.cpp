// The choice of the probability from which on a model says yes.
#include "lockstep/train/evaluation/threshold.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "support/error_text.h"

namespace lockstep::test::threshold_test {

ScoredSamples samples_of(const std::vector<std::pair<double, bool>>& all) {
  ScoredSamples samples;
  for (const auto& [probability, yes] : all)
    samples.push_back({.score = static_cast<Scalar>(probability), .target = yes ? Scalar{1} : Scalar{0}});
  std::ranges::sort(samples);
  return samples;
}

double value_at(const std::string& measure, double threshold, std::span<const ScoredSample> samples) {
  double yes = 0, no = 0, found = 0, wrong = 0;
  for (const ScoredSample& sample : samples) {
    const double weight = double{sample.weight};
    const bool said = double{sample.score} >= threshold;
    (sample.target > 0 ? yes : no) += weight;
    if (said) (sample.target > 0 ? found : wrong) += weight;
  }
  if (measure == "f1") return 2 * found / (found + wrong + yes);
  return (found / yes + (no - wrong) / no) / 2;
}

TEST(Threshold, IsTheMiddleOfTheBestGap) {
  const auto samples = samples_of({{0.1, false}, {0.2, true}, {0.25, false}, {0.4, true}, {0.9, true}});
  const ChosenThreshold balanced = choose_threshold("balanced_accuracy", samples).value();
  EXPECT_NEAR(balanced.threshold, 0.325, 1e-6);
  EXPECT_NEAR(balanced.value, (2.0 / 3 + 1) / 2, 1e-12);
  const ChosenThreshold f1 = choose_threshold("f1", samples).value();
  EXPECT_NEAR(f1.threshold, 0.15, 1e-6);
  EXPECT_NEAR(f1.value, 6.0 / 7, 1e-12);
  const ChosenThreshold youden = choose_threshold("youden", samples).value();
  EXPECT_EQ(youden.threshold, balanced.threshold);
  EXPECT_NEAR(youden.value, 2 * balanced.value - 1, 1e-12);
}

TEST(Threshold, IsTheNearestToOneHalfOfThoseThatAreEquallyGood) {
  // 2/3 of the yes with no wrong one, or all of them with a third of the others.
  const auto samples =
      samples_of({{0.1, false}, {0.2, false}, {0.3, true}, {0.4, false}, {0.7, true}, {0.8, true}});
  EXPECT_EQ(value_at("balanced_accuracy", 0.25, samples), value_at("balanced_accuracy", 0.55, samples));
  EXPECT_NEAR(choose_threshold("balanced_accuracy", samples).value().threshold, 0.55, 1e-6);
  const auto mirrored = samples_of({{0.25, true}, {0.375, false}, {0.625, true}, {0.75, false}});
  EXPECT_EQ(choose_threshold("balanced_accuracy", mirrored).value().threshold, 0.5);
}

// (1/2 + 5/6) / 2 and (2/2 + 2/6) / 2, which are not the same as doubles.
TEST(Threshold, IsTheNearestToOneHalfWhereOthersAreBetterByRoundingOnly) {
  const auto samples = samples_of({{0.9, true},
                                   {0.9, false},
                                   {0.6, true},
                                   {0.6, false},
                                   {0.6, false},
                                   {0.6, false},
                                   {0.1, false},
                                   {0.1, false}});
  EXPECT_GT(value_at("balanced_accuracy", 0.75, samples), value_at("balanced_accuracy", 0.35, samples));
  EXPECT_NEAR(choose_threshold("balanced_accuracy", samples).value().threshold, 0.35, 1e-6);
}

TEST(Threshold, NoOtherIsBetterWhateverTheWeights) {
  RandomStream random({.seed = 7, .purpose = Purpose::kSynthetic});
  for (int round = 0; round < 50; ++round) {
    ScoredSamples samples;
    for (int i = 0; i < 40; ++i)
      samples.push_back({.score = static_cast<Scalar>(random.below(20)) / 19,
                         .target = (i < 2 ? i == 0 : random.below(3) == 0) ? Scalar{1} : Scalar{0},
                         .weight = static_cast<Scalar>(1 + random.below(4))});
    std::ranges::sort(samples);
    for (const std::string measure : {"f1", "balanced_accuracy"}) {
      const ChosenThreshold chosen = choose_threshold(measure, samples).value();
      EXPECT_NEAR(chosen.value, value_at(measure, chosen.threshold, samples), 1e-12);
      for (int step = 0; step <= 38; ++step)
        EXPECT_LE(value_at(measure, step / 38.0, samples), chosen.value + 1e-12) << measure << " " << step;
    }
  }
}

TEST(Threshold, NeedsSamplesOfBothClasses) {
  EXPECT_FALSE(choose_threshold("f1", samples_of({{0.1, false}, {0.9, false}})));
  EXPECT_FALSE(choose_threshold("balanced_accuracy", samples_of({{0.1, true}, {0.9, true}})));
  EXPECT_FALSE(choose_threshold("f1", {}));
  EXPECT_NEAR(choose_threshold("f1", samples_of({{0.1, true}, {0.9, true}})).value().threshold, 0.05, 1e-6);
}

TEST(Threshold, WhatIsNotANumberIsNeverYes) {
  const auto samples = samples_of({{-1, true}, {0, true}, {0.5, false}});
  EXPECT_EQ(choose_threshold("f1", samples).value().threshold, 0);
  EXPECT_NEAR(answers_at(0, samples).accuracy, 1.0 / 3, 1e-12);
  const ThresholdAnswers none = answers_at(0.6, samples);
  EXPECT_NEAR(none.accuracy, 1.0 / 3, 1e-12);
  EXPECT_TRUE(std::isnan(none.precision));
  expect_parts(none.describe("x"),
               {"yes ('x')", "0.6", "accuracy 0.33333, precision undefined, recall 0, f1 0"});
}

// By hand: of yes 2 + 3 of the weight are found and 4 missed, of no 1 is taken for yes and 5 are not.
TEST(Threshold, AnswersCountSamplesAndShareWeights) {
  const ScoredSamples samples{{.score = 0.1F, .target = 0, .weight = 5},
                              {.score = 0.2F, .target = 1, .weight = 4},
                              {.score = 0.3F, .target = 0, .weight = 1},
                              {.score = 0.3F, .target = 1, .weight = 2},
                              {.score = 0.9F, .target = 1, .weight = 3}};
  const ThresholdAnswers found = answers_at(double{0.3F}, samples);
  EXPECT_EQ(found.confusion, (std::vector<Index>{1, 1, 1, 2}));
  EXPECT_NEAR(found.accuracy, 10.0 / 15, 1e-12);
  EXPECT_NEAR(found.precision, 5.0 / 6, 1e-12);
  EXPECT_NEAR(found.recall, 5.0 / 9, 1e-12);
  EXPECT_NEAR(found.f1, 10.0 / 15, 1e-12);
}

TEST(Threshold, IsReadFromAMeasureOrANumber) {
  EXPECT_EQ(parse_threshold("k", "youden").measure, "youden");
  EXPECT_EQ(parse_threshold("k", "0.3").number, 0.3);
  EXPECT_EQ(parse_threshold("k", "1").number, 1);
  EXPECT_FALSE(parse_threshold("k", "").number);
  for (const char* bad : {"f2", "1.1", "-0.1", "0.3x", "nan"}) {
    expect_parts(error_text<ConfigError>([&] { parse_threshold("eval.threshold", bad); }),
                 {"eval.threshold", "balanced_accuracy", bad});
  }
}

TEST(Threshold, IsOfOneYesOrNo) {
  EXPECT_TRUE(has_one_yes(TargetKind::kBinary, 1));
  EXPECT_TRUE(has_one_yes(TargetKind::kClass, 2));
  EXPECT_FALSE(has_one_yes(TargetKind::kBinary, 2));
  EXPECT_TRUE(has_yes(TargetKind::kBinary, 2));
  EXPECT_FALSE(has_one_yes(TargetKind::kClass, 3));
  EXPECT_FALSE(has_one_yes(TargetKind::kValue, 1));
  EXPECT_FALSE(has_yes({TargetKind::kBinary, Link::kIdentity}, 1));
}

}  // namespace lockstep::test::threshold_test
