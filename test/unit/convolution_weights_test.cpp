// Which weights a convolution multiplies with, of those that it has seen.
#include <algorithm>

#include <gtest/gtest.h>

#include "lockstep/math/convolution.h"
#include "support/kernel_operands.h"
#include "support/seed.h"

namespace lockstep::convolution_weights_test {
namespace {

using test::Bits;
using test::bits;
using test::Operand;

constexpr Index kRows = 4;
constexpr Window kThree{.size = 3, .pad_before = 1, .pad_after = 1};
constexpr ConvolutionShape kShape{.in_height = 8,
                                  .in_width = 8,
                                  .in_channels = 16,
                                  .out_channels = 32,
                                  .vertical = kThree,
                                  .horizontal = kThree};

class WeightsOfConvolutions : public testing::Test {
 protected:
  using Weights = ConvolutionWeights<Scalar>;

  // The bits of what is computed with them, forward and back.
  Bits results(const Weights& w) {
    Matrix y_matrix = y_.matrix();
    Matrix dx_matrix = dx_.matrix();
    convolution_forward(kShape, x_.view(), w, {}, y_matrix);
    convolution_backward_data(kShape, dy_.view(), w, dx_matrix);
    Bits all = bits(y_.values());
    const Bits back = bits(dx_.values());
    all.insert(all.end(), back.begin(), back.end());
    return all;
  }

  std::mt19937_64 rng_{test::seed()};
  Operand one_{1, kShape.weight_count(), rng_};
  Operand other_{1, kShape.weight_count(), rng_};
  Operand x_{kRows, kShape.in_size(), rng_};
  Operand dy_{kRows, kShape.out_size(), rng_};
  Operand y_{kRows, kShape.out_size(), rng_};
  Operand dx_{kRows, kShape.in_size(), rng_};
};

TEST_F(WeightsOfConvolutions, AreKnownByPlaceAndVersion) {
  const Bits with_one = results({.values = one_.values()});
  const Bits with_other = results({.values = other_.values()});
  ASSERT_NE(with_one, with_other);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(results({.values = one_.values(), .version = 1}), with_one);
    EXPECT_EQ(results({.values = other_.values(), .offset = 16, .version = 1}), with_other);
  }
  EXPECT_EQ(results({.values = other_.values(), .version = 2}), with_other);
  EXPECT_EQ(results({.values = one_.values()}), with_one);
  EXPECT_EQ(results({.values = other_.values()}), with_other);
}

TEST_F(WeightsOfConvolutions, AreLaidOutOncePerVersion) {
  if (!kernel_back_end().starts_with("oneDNN")) GTEST_SKIP() << kernel_back_end() << " keeps none";
  const Weights w{.values = one_.values(), .version = 3};
  const Bits before = results(w);
  std::ranges::fill(one_.values(), Scalar{0});
  EXPECT_EQ(results(w), before);
}

}  // namespace
}  // namespace lockstep::convolution_weights_test
