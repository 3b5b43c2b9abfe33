// Which weights a convolution multiplies with, of those that it has seen.
#include "lockstep/math/convolution.h"
#include "support/kernel_operands.h"
#include "support/seed.h"

namespace lockstep::test::convolution_weights_test {

constexpr Index kRows = 4;
const ConvolutionShape kShape = square(8, 16, 32, {.size = 3, .pad_before = 1, .pad_after = 1});

class WeightsOfConvolutions : public testing::Test {
 protected:
  using Weights = ConvolutionWeights<Scalar>;
  // The bits of what is computed with them, forward and back.
  Bits results(const Weights& w) {
    Matrix y_matrix = y_.matrix(), dx_matrix = dx_.matrix();
    convolution_forward(kShape, x_.view(), w, {}, y_matrix);
    convolution_backward_data(kShape, dy_.view(), w, dx_matrix);
    return bits({&y_, &dx_});
  }
  std::mt19937_64 rng_{seed()};
  Operand one_{1, kShape.weight_count(), rng_}, other_{1, kShape.weight_count(), rng_};
  Operand x_{kRows, kShape.in_size(), rng_}, dy_{kRows, kShape.out_size(), rng_};
  Operand y_{kRows, kShape.out_size(), rng_}, dx_{kRows, kShape.in_size(), rng_};
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

}  // namespace lockstep::test::convolution_weights_test
