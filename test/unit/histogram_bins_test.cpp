#include "lockstep/math/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::histogram_bins_test {
namespace {

TEST(HistogramBins, ABinEndsAboveItsNumbersAndTheNextOneBelow) {
  for (const Scalar value :
       {1e-9F, 0.3F, 1.0F, 1.4999F, 1.5F, 700.0F, -1e-9F, -0.3F, -1.1F, -1.6F, -700.0F}) {
    const Index bin = histogram_bin(value);
    EXPECT_LE(static_cast<double>(value), histogram_limit(bin)) << value;
    EXPECT_GE(static_cast<double>(value), histogram_limit(bin - 1)) << value;
  }
}

TEST(HistogramBins, LimitsRiseAndTheOuterBinsTakeTheRest) {
  for (Index bin = 1; bin < kHistogramBins; ++bin) EXPECT_LT(histogram_limit(bin - 1), histogram_limit(bin));
  EXPECT_EQ(histogram_bin(0), kHistogramBins / 2);
  EXPECT_EQ(histogram_bin(1e30F), kHistogramBins - 1);
  EXPECT_EQ(histogram_bin(-1e30F), 0);
  EXPECT_EQ(histogram_bin(std::nanf("")), kHistogramBins / 2);
}

}  // namespace
}  // namespace lockstep::histogram_bins_test
