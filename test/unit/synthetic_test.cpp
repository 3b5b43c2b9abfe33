#include <Eigen/Cholesky>

#include "lockstep/base/errors.h"
#include "lockstep/base/timer.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/math/eigen_matrix.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/seed.h"

namespace lockstep::synthetic_test {

using namespace test;

std::unique_ptr<RecordSource> open(const SyntheticOptions& synthetic, Split split = Split::kTrain,
                                   std::uint64_t seed = 5) {
  DataOptions options;
  options.format = "synthetic";
  options.synthetic = synthetic;
  return choose_format(options).open({options, split, seed, alone()});
}

Gathered gather_first(const RecordSource& source, Index count) {
  std::vector<Index> ids;
  for (Index id = 0; id < count; ++id) ids.push_back(id);
  return gather(*load(source, everything(source), {.classes = 0}), source.info(), ids);
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const std::vector<double>& values) {
  Moments result;
  for (const double value : values) result.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    result.variance += (value - result.mean) * (value - result.mean) / static_cast<double>(values.size());
  return result;
}

TEST(Synthetic, ASampleIsTheSameWhateverElseIsLoaded) {
  for (const Index classes : {0, 7}) {
    const auto source = open({.rows = 100, .features = 5, .classes = classes});
    const auto whole = load(*source, everything(*source), {.classes = 0});
    for (Index part = 0; part < 3; ++part) {
      const RecordFilter filter = every_nth(*source, 3, part);
      const auto some = load(*source, filter, {.classes = 0});
      EXPECT_EQ(some->rows(), filter.count);
      const std::vector<Index> ids = wanted_ids(100, filter);
      EXPECT_EQ(gather(*some, source->info(), ids), gather(*whole, source->info(), ids));
    }
    // Nor does it depend on what is gathered with it.
    const Gathered alone = gather(*whole, source->info(), {42});
    const Gathered among = gather(*whole, source->info(), {99, 42, 42});
    EXPECT_TRUE(std::equal(alone.features.begin(), alone.features.end(), among.features.begin() + 5));
    EXPECT_TRUE(std::equal(alone.features.begin(), alone.features.end(), among.features.begin() + 10));
    EXPECT_EQ(alone.targets[0], among.targets[1]);
  }
}

TEST(Synthetic, ABillionRowsCostNoMemoryAndNoTime) {
  const Index billion = 1'000'000'000;
  const Stopwatch watch;
  const auto source = open({.rows = billion, .features = 16, .classes = 10});
  EXPECT_EQ(source->info().rows, billion);
  const auto records = load(*source, everything(*source), {.classes = 10});
  EXPECT_EQ(records->rows(), billion);
  EXPECT_LT(records->bytes(), 10'000);
  EXPECT_NE(gather(*records, source->info(), {billion - 1}), gather(*records, source->info(), {billion - 2}));
  EXPECT_LT(watch.seconds(), 0.5);
}

TEST(Synthetic, ClassesAreBalancedAndLieAroundTheirCentres) {
  const Index rows = 20'000, classes = 4, features = 3;
  const auto source =
      open({.rows = rows, .features = features, .classes = classes, .noise = 0.5}, Split::kTrain, seed());
  const Gathered all = gather_first(*source, rows);
  for (Index label = 0; label < classes; ++label)
    for (Index feature = 0; feature < features; ++feature) {
      std::vector<double> values;
      for (Index row = 0; row < rows; ++row) {
        if (at(all.targets, row) != static_cast<Scalar>(label)) continue;
        values.push_back(at(all.features, row * features + feature));
      }
      // Five thousand are expected, with a deviation of about 61: six of them.
      EXPECT_NEAR(static_cast<double>(values.size()), 5000, 370);
      EXPECT_NEAR(std::sqrt(moments(values).variance), 0.5, 0.5 * 6 / std::sqrt(2.0 * 5000));
    }
}

TEST(Synthetic, CentresAreStandardNormal) {
  const auto source =
      open({.rows = 100, .features = 20'000, .classes = 1, .noise = 0}, Split::kTrain, seed());
  const Gathered one = gather_first(*source, 1);
  const Moments centre = moments({one.features.begin(), one.features.end()});
  EXPECT_NEAR(centre.mean, 0, 6 / std::sqrt(20'000.0));
  EXPECT_NEAR(centre.variance, 1, 6 * std::sqrt(2 / 20'000.0));
}

TEST(Synthetic, WithoutNoiseRegressionIsLinear) {
  const Index features = 3;
  const auto source = open({.rows = 200, .features = features, .classes = 0, .noise = 0});
  const Gathered all = gather_first(*source, 200);
  using Design = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
  const Design x = as_eigen(ConstMatrix(all.features.data(), 200, features)).cast<double>();
  const Eigen::VectorXd y = as_eigen(ConstMatrix(all.targets.data(), 200, 1)).cast<double>();
  const Eigen::VectorXd w = (x.transpose() * x).ldlt().solve(x.transpose() * y);
  EXPECT_LT((x * w - y).cwiseAbs().maxCoeff(), 1e-5);
  EXPECT_GT(std::abs(w(0) - w(1)), 1e-3);
  EXPECT_GT(std::abs(w(1) - w(2)), 1e-3);
}

TEST(Synthetic, RegressionTargetsVaryByAboutOneHoweverManyFeatures) {
  const auto source = open({.rows = 5000, .features = 1000, .classes = 0, .noise = 0}, Split::kTrain, seed());
  const Gathered all = gather_first(*source, 5000);
  // The squares of a thousand weights, by their number: six deviations of that, and some for the samples.
  EXPECT_NEAR(moments({all.targets.begin(), all.targets.end()}).variance, 1,
              6 * std::sqrt(2 / 1000.0) + 0.15);
}

TEST(Synthetic, RegressionFeaturesAreStandardNormalAndNoiseIsAdded) {
  const Index rows = 20'000;
  const auto quiet = open({.rows = rows, .features = 4, .classes = 0, .noise = 0});
  const auto noisy = open({.rows = rows, .features = 4, .classes = 0, .noise = 2});
  const Gathered a = gather_first(*quiet, rows), b = gather_first(*noisy, rows);
  EXPECT_EQ(a.features, b.features);
  const Moments x = moments({a.features.begin(), a.features.end()});
  EXPECT_NEAR(x.mean, 0, 0.02);
  EXPECT_NEAR(x.variance, 1, 0.03);
  std::vector<double> noise;
  for (std::size_t i = 0; i < a.targets.size(); ++i)
    noise.push_back(double{b.targets[i]} - double{a.targets[i]});
  EXPECT_NEAR(moments(noise).mean, 0, 0.08);
  EXPECT_NEAR(moments(noise).variance, 4, 0.25);
}

TEST(Synthetic, SplitsShareTheCentresAndNotTheSamples) {
  const SyntheticOptions noiseless = {.rows = 50, .test_rows = 50, .features = 2, .classes = 1, .noise = 0};
  EXPECT_EQ(open(noiseless, Split::kValidation), nullptr);
  EXPECT_EQ(gather_first(*open(noiseless), 1), gather_first(*open(noiseless, Split::kTest), 1));
  SyntheticOptions noisy = noiseless;
  noisy.noise = 1;
  EXPECT_NE(gather_first(*open(noisy), 1), gather_first(*open(noisy, Split::kTest), 1));
  EXPECT_NE(gather_first(*open(noisy), 1), gather_first(*open(noisy, Split::kTrain, 6), 1));
}

TEST(Synthetic, RefusesWhatCannotBe) {
  expect_parts(error_text<ConfigError>([] { open({.rows = 0}); }), {"data.synthetic_rows is 0", "set it"});
  expect_parts(error_text<ConfigError>([] { open({.rows = 5, .features = 0}); }), {"0 features"});
  const auto ten = open({.rows = 5, .classes = 10});
  expect_parts(error_text<DataError>([&] { load(*ten, everything(*ten), {.classes = 9}); }),
               {"classes up to 9", "data.synthetic_classes = 10", "a class below 9"});
  const auto regression = open({.rows = 5, .classes = 0});
  expect_parts(error_text<DataError>([&] { load(*regression, everything(*regression), {.classes = 9}); }),
               {"data.synthetic_classes = 0", "a class below 9"});
}

}  // namespace lockstep::synthetic_test
