// Predictions against their targets: which samples are drawn, in which units, and how residuals are counted.
#include "lockstep/train/evaluation/evaluation_details.h"

#include "support/thread_ranks.h"

namespace lockstep::target_fit_test {

using Pair = std::pair<double, double>;

struct Rows {
  std::vector<Scalar> outputs, targets, weights = {};
  Index first_id = 0;
};

void add(FitSamples& fits, const Rows& rows, Index count) {
  std::vector<Index> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), rows.first_id);
  const ConstMatrix outputs(rows.outputs.data(), count, std::ssize(rows.outputs) / count);
  const ConstMatrix targets(rows.targets.data(), count, std::ssize(rows.targets) / count);
  fits.add({.outputs = outputs, .targets = targets, .weights = {.values = rows.weights}}, ids);
}

std::vector<Pair> sorted(std::vector<Pair> pairs) {
  std::ranges::sort(pairs);
  return pairs;
}

// Each target has its scale: the first counts in twos from 10 on, the second is a logarithm.
TEST(TargetFit, IsInTheUnitsOfEachLabel) {
  run_thread_ranks(1, [](Communicator& comm) {
    FitSamples fits(TargetKind::kValue, 2, 2,
                    {LabelScale{.shift = 10, .range = 2},
                     LabelScale{.shift = std::log1p(3.0), .range = 1, .logarithm = true}});
    add(fits, {.outputs = {1, 0, -3, 0}, .targets = {2, 0, 0.5F, 0}}, 2);
    const std::vector<TargetFit> found = fits.fits(comm);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(sorted(found[0].sample), (std::vector<Pair>{{11, 4}, {14, 12}}));
    ASSERT_EQ(found[1].sample.size(), 2U);
    EXPECT_NEAR(found[1].sample[0].first, 3, 1e-5);
    EXPECT_NEAR(found[1].sample[1].second, 3, 1e-5);
    EXPECT_DOUBLE_EQ(found[0].width, 1.2 * 2) << "98 in 100 of two are one";
    EXPECT_EQ(found[1].width, 1) << "there is no residual at all";
  });
}

// Of an odd number of levels that in the middle is the prediction.
TEST(TargetFit, OfQuantilesIsThatOfTheMiddleLevel) {
  run_thread_ranks(1, [](Communicator& comm) {
    OutputForm form(TargetKind::kValue);
    form.quantiles = {0.1, 0.5, 0.9};
    FitSamples fits(form, 6, 1, {});
    add(fits, {.outputs = {1, 2, 3, 4, 5, 6}, .targets = {7, 8}}, 1);
    const std::vector<TargetFit> found = fits.fits(comm);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].sample, (std::vector<Pair>{{7, 2}}));
    EXPECT_EQ(found[1].sample, (std::vector<Pair>{{8, 5}}));
  });
}

TEST(TargetFit, LeavesOutWhatIsMissingWhateverItWeighs) {
  run_thread_ranks(1, [](Communicator& comm) {
    constexpr Scalar kNone = std::numeric_limits<Scalar>::quiet_NaN();
    FitSamples fits(TargetKind::kValue, 1, 5, {});
    add(fits, {.outputs = {1, 2, kNone, 4, 5}, .targets = {1, kNone, 3, 4, 6}, .weights = {1, 1, 1, 0, 0.5F}},
        5);
    const std::vector<TargetFit> found = fits.fits(comm);
    EXPECT_EQ(sorted(found[0].sample), (std::vector<Pair>{{1, 1}, {4, 4}, {6, 5}}));
    EXPECT_EQ(std::accumulate(found[0].residuals.begin(), found[0].residuals.end(), Index{0}), 3);
  });
}

TEST(TargetFit, IsOfTheFirstTargetsAndOfValuesAlone) {
  run_thread_ranks(1, [](Communicator& comm) {
    const auto count = [&](const OutputForm& form, Index outputs) {
      return FitSamples(form, outputs, 10, {}).fits(comm).size();
    };
    EXPECT_EQ(count(TargetKind::kValue, 4), 4U);
    EXPECT_EQ(count(TargetKind::kValue, 5), 4U);
    EXPECT_EQ(count(TargetKind::kClass, 3), 0U);
    EXPECT_EQ(count(TargetKind::kBinary, 1), 0U);
    OutputForm direction(TargetKind::kValue);
    direction.direction = true;
    EXPECT_EQ(count(direction, 2), 0U);
  });
}

// Residuals 0 to 100, of which that of place 98 times 1.2 is the width: 41 bins of 5.7. What is farther away
// is in the outer bins, on its own side.
TEST(TargetFit, CountsResidualsOnTheirSideOfZero) {
  run_thread_ranks(1, [](Communicator& comm) {
    for (const Scalar sign : {Scalar{1}, Scalar{-1}}) {
      Rows rows;
      for (Index i = 0; i <= 100; ++i) {
        rows.outputs.push_back(sign * static_cast<Scalar>(i == 100 ? 1000 : i));  // prediction - target
        rows.targets.push_back(0);
      }
      FitSamples fits(TargetKind::kValue, 1, 101, {});
      add(fits, rows, 101);
      const TargetFit fit = fits.fits(comm).front();
      EXPECT_DOUBLE_EQ(fit.width, 1.2 * 98);
      ASSERT_EQ(std::ssize(fit.residuals), kResidualBins);
      const double bin = 2 * fit.width / static_cast<double>(kResidualBins);
      std::vector<Index> expected(static_cast<std::size_t>(kResidualBins));
      for (Index i = 0; i < 100; ++i) {
        const double place = (double{sign} * static_cast<double>(i) + fit.width) / bin;
        ++at(expected, static_cast<Index>(place));
      }
      ++(sign > 0 ? expected.back() : expected.front());
      EXPECT_EQ(fit.residuals, expected) << sign;
      EXPECT_EQ(fit.sample.size(), 101U);
    }
  });
}

// The thousand samples that are drawn are the same whoever has them.
TEST(TargetFit, DrawsTheSameThousandOnAnyRanks) {
  constexpr Index kRows = 3000;
  const auto fit_on = [](int ranks) {
    TargetFit fit;
    run_thread_ranks(ranks, [&](Communicator& comm) {
      FitSamples fits(TargetKind::kValue, 1, kRows, {}), other(TargetKind::kValue, 1, kRows, {});
      const Range mine = split_evenly(kRows, comm.size(), comm.rank());
      for (Index id = mine.begin; id < mine.end; ++id) {
        const auto number = static_cast<Scalar>(id);
        add(id % 3 == 0 ? other : fits, {.outputs = {number + 1}, .targets = {number}, .first_id = id}, 1);
      }
      fits.add(other);
      const TargetFit found = fits.fits(comm).front();
      if (comm.rank() == comm.size() - 1) fit = found;
    });
    return fit;
  };
  const TargetFit one = fit_on(1), three = fit_on(3);
  EXPECT_EQ(std::tuple(one.sample.size(), one.sample, one.residuals),
            std::tuple(1000U, three.sample, three.residuals));
  EXPECT_EQ(std::accumulate(one.residuals.begin(), one.residuals.end(), Index{0}), kRows) << "of all";
  std::vector<double> targets;
  for (const auto& [target, prediction] : one.sample) {
    EXPECT_EQ(prediction, target + 1);
    targets.push_back(target);
  }
  std::ranges::sort(targets);
  EXPECT_EQ(std::ranges::adjacent_find(targets), targets.end()) << "each once";
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / 1000;
  EXPECT_NEAR(mean, kRows / 2, 5 * 866 / std::sqrt(1000.0)) << "from all over the set";
}

}  // namespace lockstep::target_fit_test
