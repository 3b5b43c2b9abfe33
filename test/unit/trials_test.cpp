#include "lockstep/config/trials.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/known_names.h"

namespace lockstep::test::trials_test {

using Trials = std::vector<std::vector<Setting>>;

Trials list(const SweepRequest& request, std::uint64_t seed = 1) {
  return list_trials(request, options(), seed);
}

std::string refusal(const SweepRequest& request) {
  return error_text<ConfigError>([&] { list(request); });
}

SweepRequest draws(const std::string& random, Index count) {
  return {.randoms = {random}, .draws = count};
}

TEST(Trials, AGridIsTheProductWithTheFirstKeyVaryingSlowest) {
  const Trials trials = list({.grids = {"train.lr=0.01, 0.1", "train.optimizer=sgd,adam"}});
  ASSERT_EQ(trials.size(), 4U);
  EXPECT_EQ(trials[1], (std::vector<Setting>{{"train.lr", "0.01"}, {"train.optimizer", "adam"}}));
  EXPECT_EQ(trials[2], (std::vector<Setting>{{"train.lr", "0.1"}, {"train.optimizer", "sgd"}}));
}

TEST(Trials, CommasInParenthesesAndBehindABarBelongToTheValue) {
  const Trials layers = list({.grids = {"model.layers=conv2d(16, 3) relu, conv2d(8, 5)"}});
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0][0].value, "conv2d(16, 3) relu");
  const Trials lists = list({.grids = {"data.ignore=a,b|c"}});
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0][0].value, "a,b");
  EXPECT_EQ(list({.grids = {"data.ignore=a,b"}}).size(), 1U) << "a list is one value";
}

TEST(Trials, DrawsFollowSeedNumberAndKeyAlone) {
  const Trials ten = list(draws("train.lr=log(1e-4,1e-1)", 10));
  const Trials twenty = list(draws("train.lr=log(1e-4,1e-1)", 20));
  EXPECT_TRUE(std::equal(ten.begin(), ten.end(), twenty.begin())) << "more draws leave the first as they are";
  EXPECT_NE(ten, list(draws("train.lr=log(1e-4,1e-1)", 10), 2));
  const Trials beside =
      list({.randoms = {"train.momentum=uniform(0,0.9)", "train.lr=log(1e-4,1e-1)"}, .draws = 10});
  for (std::size_t i = 0; i < ten.size(); ++i) EXPECT_EQ(beside[i][1], ten[i][0]);
  std::set<std::string> different;
  for (const auto& trial : twenty) different.insert(trial[0].value);
  EXPECT_EQ(different.size(), 20U);
}

// One share for all keys of a trial would try points of one line alone.
TEST(Trials, DrawsOfTwoKeysAreInOrdersOfTheirOwn) {
  Index same_side = 0;
  for (const auto& trial :
       list({.randoms = {"train.momentum=uniform(0,0.5)", "train.lr=uniform(0.1,1.1)"}, .draws = 200}))
    same_side += (std::stod(trial[0].value) < 0.25) == (std::stod(trial[1].value) < 0.6) ? 1 : 0;
  EXPECT_TRUE(70 <= same_side && same_side <= 130) << same_side;
}

TEST(Trials, DrawsFillTheRangeOfTheirDistribution) {
  constexpr Index kDraws = 2000;
  double below = 0;
  for (const auto& trial : list(draws("train.lr=log(1e-4,1e-2)", kDraws))) {
    const double value = std::stod(trial[0].value);
    EXPECT_GE(value, 1e-4);
    EXPECT_LE(value, 1e-2);
    below += value < 1e-3 ? 1 : 0;
  }
  EXPECT_NEAR(below / kDraws, 0.5, 0.06) << "half of a log range is below its middle";
  for (const auto& trial : list(draws("train.lr=uniform(0.12345,0.12347)", 20))) {  // four digits lie outside
    EXPECT_GE(std::stod(trial[0].value), 0.12345);
    EXPECT_LE(std::stod(trial[0].value), 0.12347);
  }
  std::set<std::string> whole;
  for (const auto& trial : list(draws("train.global_batch=int(3,6)", kDraws))) whole.insert(trial[0].value);
  EXPECT_EQ(whole, (std::set<std::string>{"3", "4", "5", "6"}));
  std::set<std::string> chosen;
  for (const auto& trial : list(draws("train.optimizer=choice(sgd|adam)", 50))) chosen.insert(trial[0].value);
  EXPECT_EQ(chosen, (std::set<std::string>{"sgd", "adam"}));
}

TEST(Trials, APartIsOneOfSeveralAndNoneOfAHalving) {
  const auto parsed = [](const std::string& part, const std::string& halving) {
    CommandLine line{.command = "sweep", .flags = {{"grid", {"train.lr=1,2"}}}};
    if (!part.empty()) line.flags["part"] = {part};
    if (!halving.empty()) line.flags["halving"] = {halving};
    const SweepRequest request = parse_sweep(line);
    return std::vector<Index>{request.part, request.parts, request.halving};
  };
  EXPECT_EQ(parsed("", ""), (std::vector<Index>{1, 1, 0}));
  EXPECT_EQ(parsed("2/8", ""), (std::vector<Index>{2, 8, 0}));
  EXPECT_EQ(parsed("8/8", ""), (std::vector<Index>{8, 8, 0}));
  EXPECT_EQ(parsed("1/1", "2"), (std::vector<Index>{1, 1, 2}));
  for (const char* part : {"0/8", "9/8", "1", "1/x", "/2", "1/10000"})
    EXPECT_THROW(parsed(part, ""), ConfigError);
  EXPECT_THROW(parsed("1/2", "2"), ConfigError);
}

TEST(Trials, EachGridPointIsTriedWithTheSameDraws) {
  const Trials trials =
      list({.grids = {"train.optimizer=sgd,adam"}, .randoms = {"train.lr=uniform(0.1,0.2)"}, .draws = 3});
  ASSERT_EQ(trials.size(), 6U);
  for (std::size_t i = 0; i < 6; i += 2) EXPECT_EQ(trials[i][1], trials[i + 1][1]);
}

TEST(Trials, WhatIsWrongIsNamedBeforeAnythingRuns) {
  expect_parts(refusal({.grids = {"train.lrr=1,2"}}), {"--grid", "unknown key 'train.lrr'", "train.lr"});
  expect_parts(refusal({.grids = {"train.learning_rate=1"}}), {"Lockstep calls it", "train.lr"});
  expect_parts(refusal({.grids = {"train.lr"}}), {"KEY=VALUE,VALUE", "'train.lr'"});
  expect_parts(refusal({.grids = {"train.lr=0.1,-1"}}), {"train.lr", "'-1'"});
  expect_parts(refusal({.grids = {"train.lr=0.1,0.1"}}), {"train.lr", "'0.1' twice"});
  expect_parts(refusal({.grids = {"train.lr=0.1", "train.lr=0.2"}}), {"train.lr is given twice"});
  expect_parts(refusal({.grids = {"run.dir=a,b"}}), {"run.dir cannot vary"});
  expect_parts(refusal(draws("train.lr=normal(0,1)", 3)), {"uniform(a,b)", "'normal(0,1)'"});
  expect_parts(refusal(draws("train.lr=log(0,1)", 3)), {"numbers above 0"});
  expect_parts(refusal(draws("train.lr=uniform(2,1)", 3)), {"a must be below b"});
  expect_parts(refusal(draws("train.global_batch=uniform(2,9)", 3)), {"int(a,b)"});
  expect_parts(refusal({.grids = {"train.lr=0.1,0.2"}, .randoms = {"run.seed=int(1,9)"}, .draws = 9000}),
               {"at most 9,999 trials"});
}

}  // namespace lockstep::test::trials_test
