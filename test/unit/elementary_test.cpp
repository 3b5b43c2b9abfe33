#include "lockstep/math/elementary.h"

#include "support/seed.h"

namespace lockstep::elementary_test {

constexpr double kUnit = 0x1p-23;  // one unit in the last place, relative

TEST(Elementary, ExponentialIsExactTo2Units) {
  for (int i = 0; i <= 870000; ++i) {
    const Scalar x = static_cast<Scalar>(i) * -1e-4F;
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(exp_nonpositive(x), exact, 2 * kUnit * exact) << x;
  }
  EXPECT_EQ(exp_nonpositive(0), 1);
  EXPECT_EQ(exp_nonpositive(-88), 0);
  EXPECT_EQ(exp_nonpositive(-std::numeric_limits<Scalar>::max()), 0);
  EXPECT_EQ(exp_nonpositive(-std::numeric_limits<Scalar>::infinity()), 0);
  EXPECT_TRUE(std::isnan(exp_nonpositive(std::numeric_limits<Scalar>::quiet_NaN())));
}

TEST(Elementary, ExponentialMinus1IsExactTo3UnitsAlsoNearZero) {
  for (Scalar x = -100; x < -1e-30F; x *= 0.9995F) {
    const double exact = std::expm1(static_cast<double>(x));
    ASSERT_NEAR(exp_minus_1_nonpositive(x), exact, -3 * kUnit * exact) << x;
  }
  EXPECT_EQ(exp_minus_1_nonpositive(0), 0);
  EXPECT_EQ(exp_minus_1_nonpositive(-std::numeric_limits<Scalar>::infinity()), -1);
  EXPECT_TRUE(std::isnan(exp_minus_1_nonpositive(std::numeric_limits<Scalar>::quiet_NaN())));
}

TEST(Elementary, SineAndCosineOfTurnsAreExactTo2UnitsOf1) {
  constexpr double kTwoPi = 6.283185307179586476925;
  for (Scalar turns = -40; turns < 40; turns += 0.000317F) {
    const SineCosine found = sine_cosine_of_turns(turns);
    const double angle = kTwoPi * static_cast<double>(turns);
    ASSERT_NEAR(found.sine, std::sin(angle), 2 * kUnit) << turns;
    ASSERT_NEAR(found.cosine, std::cos(angle), 2 * kUnit) << turns;
  }
  for (const Scalar whole : {-3.0F, 0.0F, 1.0F, 65536.0F}) {
    EXPECT_EQ(sine_cosine_of_turns(whole).sine, 0);
    EXPECT_EQ(sine_cosine_of_turns(whole).cosine, 1);
    EXPECT_EQ(sine_cosine_of_turns(whole + 0.25F).sine, 1);
    EXPECT_EQ(sine_cosine_of_turns(whole + 0.5F).cosine, -1);
    EXPECT_EQ(sine_cosine_of_turns(whole + 0.75F).sine, -1);
  }
  EXPECT_TRUE(std::isnan(sine_cosine_of_turns(std::numeric_limits<Scalar>::quiet_NaN()).sine));
  EXPECT_TRUE(std::isnan(sine_cosine_of_turns(std::numeric_limits<Scalar>::infinity()).cosine));
}

TEST(Elementary, LogarithmIsExactTo3UnitsAlsoNearZero) {
  for (Scalar x = 1; x > 1e-30F; x *= 0.999F) {
    const double exact = std::log1p(static_cast<double>(x));
    ASSERT_NEAR(log_1_plus(x), exact, 3 * kUnit * exact) << x;
  }
  EXPECT_EQ(log_1_plus(0), 0);
  EXPECT_TRUE(std::isnan(log_1_plus(std::numeric_limits<Scalar>::quiet_NaN())));
}

TEST(Elementary, ExponentialOfAnyNumberIsExactTo3Units) {
  for (Scalar x = -87; x < 87; x += 0.00137F) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(exponential(x), exact, 3 * kUnit * exact) << x;
  }
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(200), std::numeric_limits<Scalar>::infinity());
  EXPECT_EQ(exponential(-std::numeric_limits<Scalar>::infinity()), 0);
  EXPECT_EQ(exponential(std::numeric_limits<Scalar>::infinity()), std::numeric_limits<Scalar>::infinity());
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<Scalar>::quiet_NaN())));
}

TEST(Elementary, LogarithmOfAnyNumberIsExactTo3UnitsAlsoNearOne) {
  const auto expect_exact = [](Scalar x) {
    const double exact = std::log(static_cast<double>(x));
    ASSERT_NEAR(logarithm(x), exact, 3 * kUnit * std::abs(exact)) << x;
  };
  for (Scalar x = 1e-37F; x < 1e38F; x *= 1.0009F) expect_exact(x);
  for (Scalar x = 0.5F; x < 2; x += 1.1e-5F) expect_exact(x);
  for (Scalar d = 1; d > kUnit; d *= 0.99F) {
    expect_exact(1 + d);
    expect_exact(1 - d / 2);
  }
  EXPECT_EQ(logarithm(1), 0);
  EXPECT_TRUE(std::isnan(logarithm(std::numeric_limits<Scalar>::quiet_NaN())));
}

TEST(Elementary, PowersOfSharesAreThoseOfTheLibrary) {
  for (const Scalar exponent : {0.0F, 0.5F, 1.0F, 2.0F, 5.0F})
    for (Scalar base = 1; base > 1e-15F; base *= 0.993F) {
      const double exact = std::pow(static_cast<double>(base), static_cast<double>(exponent));
      ASSERT_NEAR(power_of_share(base, exponent), exact, 64 * kUnit * exact + 1e-37)
          << base << " " << exponent;
    }
  EXPECT_EQ(power_of_share(0, 0), 1);
  EXPECT_EQ(power_of_share(0, 2), 0);
  EXPECT_TRUE(std::isnan(power_of_share(std::numeric_limits<Scalar>::quiet_NaN(), 2)));
  EXPECT_TRUE(std::isnan(power_of_share(std::numeric_limits<Scalar>::quiet_NaN(), 0)));
}

TEST(Elementary, BitsDoNotDependOnThePlaceInALoop) {
  std::mt19937_64 rng(test::seed());
  std::uniform_real_distribution<Scalar> uniform(-90, 0);
  std::vector<Scalar> x(301);
  for (Scalar& value : x) value = uniform(rng);
  const auto results = [&](std::size_t first) {
    std::vector<Scalar> y(x.size() - first);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = log_1_plus(exp_nonpositive(x[first + i]));
    return y;
  };
  const std::vector<Scalar> whole = results(0);
  for (std::size_t first = 1; first < 40; ++first)
    EXPECT_EQ(results(first), std::vector<Scalar>(whole.begin() + static_cast<Index>(first), whole.end()));
}

// Largest difference from the C library over [-20, 20], relative to the larger of the value and `floor`.
template <class Ours, class Theirs>
double worst(const Ours& ours, const Theirs& theirs, double floor) {
  double most = 0;
  for (int i = -20000; i <= 20000; ++i) {
    const Scalar x = static_cast<Scalar>(i) * Scalar{1e-3F};
    const double expected = theirs(static_cast<double>(x));
    most = std::max(most, std::abs(ours(x) - expected) / std::max(std::abs(expected), floor));
  }
  return most;
}

TEST(Elementary, SigmoidTangentAndNormalAreClose) {
  EXPECT_LT(worst(
                sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-30),
            4e-7);
  EXPECT_LT(worst(
                hyperbolic_tangent, [](double x) { return std::tanh(x); }, 1e-30),
            4e-7);
  EXPECT_LT(worst(
                normal_distribution, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }, 1.0),
            3e-7);
  EXPECT_LT(worst(
                normal_density,
                [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }, 1e-3),
            1e-5);
  for (const auto function : {sigmoid, hyperbolic_tangent, normal_distribution, normal_density})
    EXPECT_TRUE(std::isnan(function(std::numeric_limits<Scalar>::quiet_NaN())));
  EXPECT_EQ(sigmoid(1000), 1);
  EXPECT_EQ(sigmoid(-1000), 0);
  EXPECT_EQ(hyperbolic_tangent(-1000), -1);
}

}  // namespace lockstep::elementary_test
