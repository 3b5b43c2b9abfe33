#include "lockstep/train/evaluation/next_token.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"

namespace lockstep::next_token_test {

const std::vector<Scalar> kOutputs{0.0F, 2.0F, 1.0F, -1.0F, 2.0F};

// How often each token is drawn, as shares.
std::vector<double> shares_of_draws(const DrawOptions& options) {
  constexpr Index kDraws = 20000;
  TokenDrawer drawer(options);
  std::vector<double> shares(kOutputs.size());
  for (Index i = 0; i < kDraws; ++i) at(shares, drawer.draw(kOutputs, i % 10, i / 10)) += 1.0 / kDraws;
  return shares;
}

// exp(outputs / temperature) of the tokens `allowed`, divided by their sum.
void expect_softmax(const std::vector<double>& shares, const std::vector<Index>& allowed,
                    double temperature) {
  std::vector<double> expected(kOutputs.size());
  double sum = 0;
  for (const Index token : allowed)
    sum += at(expected, token) = std::exp(static_cast<double>(at(kOutputs, token)) / temperature);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(shares[i] > 0, expected[i] > 0) << i;
    EXPECT_NEAR(shares[i], expected[i] / sum, 0.015) << i;
  }
}

TEST(NextToken, IsDrawnWithItsProbability) {
  expect_softmax(shares_of_draws({}), {0, 1, 2, 3, 4}, 1);
}

TEST(NextToken, TemperatureDividesTheOutputs) {
  expect_softmax(shares_of_draws({.temperature = 2}), {0, 1, 2, 3, 4}, 2);
}

TEST(NextToken, TemperatureZeroTakesTheFirstOfTheLargest) {
  TokenDrawer drawer({.temperature = 0});
  for (Index position = 0; position < 20; ++position) EXPECT_EQ(drawer.draw(kOutputs, 0, position), 1);
}

TEST(NextToken, TopKLeavesTheMostLikely) {
  expect_softmax(shares_of_draws({.top_k = 3}), {1, 2, 4}, 1);
  expect_softmax(shares_of_draws({.top_k = 1}), {1}, 1);
  expect_softmax(shares_of_draws({.top_k = 99}), {0, 1, 2, 3, 4}, 1);
}

// The probabilities are 0.37, 0.37, 0.14, 0.05 and 0.02.
TEST(NextToken, TopPLeavesTheFewestThatReachIt) {
  expect_softmax(shares_of_draws({.top_p = 0.5}), {1, 4}, 1);
  expect_softmax(shares_of_draws({.top_p = 0.8}), {1, 2, 4}, 1);
  expect_softmax(shares_of_draws({.top_p = 0.001}), {1}, 1);
}

// The largest output of all is the fifth, which stands for no token.
TEST(NextToken, IsNeverWhatStandsForNone) {
  expect_softmax(shares_of_draws({.tokens = 3}), {0, 1, 2}, 1);
  expect_softmax(shares_of_draws({.top_k = 2, .tokens = 3}), {1, 2}, 1);
  expect_softmax(shares_of_draws({.top_p = 0.6, .tokens = 4}), {1}, 1);
  TokenDrawer drawer({.temperature = 0, .tokens = 1});
  EXPECT_EQ(drawer.draw(kOutputs, 0, 0), 0);
}

TEST(NextToken, DependsOnSeedTextAndPositionAlone) {
  TokenDrawer forwards({.seed = 7}), backwards({.seed = 7}), other({.seed = 8});
  std::vector<Index> drawn;
  Index changed = 0;
  for (Index i = 0; i < 100; ++i) drawn.push_back(forwards.draw(kOutputs, i % 4, i / 4));
  for (Index i = 99; i >= 0; --i) {
    EXPECT_EQ(backwards.draw(kOutputs, i % 4, i / 4), at(drawn, i));
    changed += other.draw(kOutputs, i % 4, i / 4) != at(drawn, i) ? 1 : 0;
  }
  EXPECT_GT(changed, 30);
}

TEST(NextToken, RefusesOutputsThatAreNoNumbers) {
  std::vector<Scalar> outputs = kOutputs;
  outputs[3] = std::numeric_limits<Scalar>::quiet_NaN();
  TokenDrawer drawer({.temperature = 0});
  test::expect_parts(test::error_text<DataError>([&] { drawer.draw(outputs, 0, 12); }), {"position 12"});
}

}  // namespace lockstep::next_token_test
