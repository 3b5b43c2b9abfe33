// The numbers of parameter servers: what the weights are after each push, beside what was computed by hand.
#include "lockstep/base/errors.h"
#include "support/asynchronous_cases.h"
#include "support/error_text.h"
#include "support/played_servers.h"

namespace lockstep::test::parameter_server_test {

using Values = std::vector<Scalar>;

// ---- each gradient a step -------------------------------------------------------------------------------

// Worker 0 pulls, worker 1 takes `staleness` steps with gradients of 1, and then that of worker 0 comes, 8.
ServersPlayed play_stale(Index staleness, Index servers, bool staleness_lr) {
  std::string arrivals = "0a 0p ";
  for (Index i = 0; i < staleness; ++i) arrivals += "1a 1p 1u ";
  arrivals += "0u 0a 1a 0g 1g";
  ServersPlay play{.options = {.mode = ServerMode::kAsync, .staleness_lr = staleness_lr},
                   .until = staleness + 1,
                   .workers = {{{.mean = 8}}, {}},
                   .arrivals = same_arrivals(arrivals, servers)};
  play.workers[1].resize(static_cast<std::size_t>(staleness), {.mean = 1});
  return play_servers(play);
}

TEST(ParameterServer, AStaleGradientMovesTheWeightsByTheRateOverItsStaleness) {
  for (const Index servers : {1, 2})
    for (const Index staleness : {0, 1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << servers << " servers, staleness " << staleness);
      const ServersPlayed played = play_stale(staleness, servers, true);
      const auto own_steps = static_cast<Scalar>(staleness);
      const Scalar expected = own_steps + 8 / std::max(own_steps, Scalar{1});
      for (const Scalar w : played.weights) EXPECT_FLOAT_EQ(w, -expected);
      std::vector<Index> histogram(static_cast<std::size_t>(staleness + 1));
      histogram.back() = servers;
      EXPECT_EQ(played.report.workers[0].staleness, histogram);
      EXPECT_EQ(played.report.workers[0].staleness_sum, servers * staleness);
      EXPECT_EQ(played.report.workers[1].staleness_sum, 0) << "it pulls what it has pushed";
    }
}

TEST(ParameterServer, WithoutStalenessLrEveryGradientMovesThemByTheRate) {
  for (const Index staleness : {0, 1, 2, 3}) {
    const Scalar expected = -static_cast<Scalar>(staleness + 8);
    EXPECT_EQ(play_stale(staleness, 2, false).weights, (Values{expected, expected}));
  }
}

// The first server takes two steps of worker 1 before that of worker 0, the second one first worker 0's.
TEST(ParameterServer, EachServerGoesByTheStalenessThatItSees) {
  const ServersPlayed played =
      play_servers({.options = {.mode = ServerMode::kAsync, .staleness_lr = true},
                    .until = 3,
                    .workers = {{{.mean = 8}}, {{.mean = 1}, {.mean = 2}}},
                    .arrivals = {"0a 0p 1a 1p 1u 1a 1p 1u 0u 0a 1a 0g 1g", "0p 1p 0u 1u 1p 1u 0g 1g"}});
  EXPECT_EQ(played.weights, (Values{-(1 + 2 + 8 / 2), -(8 + 1 + 2)}));
  EXPECT_EQ(played.pulled[1][1], (Values{-1, -(8 + 1)}));
  EXPECT_EQ(played.report.workers[0].staleness, (std::vector<Index>{1, 0, 1}));
  EXPECT_EQ(played.report.workers[1].staleness, (std::vector<Index>{3, 1}));
}

TEST(ParameterServer, StepsTakeTheRateOfTheWorkerAndTheMeanOfItsSamples) {
  const ServersPlayed played =
      play_servers({.options = {.mode = ServerMode::kAsync},
                    .until = 3,
                    .workers = {{{.mean = 4, .weight = 16, .lr = 0.5}, {.mean = 4, .lr = 0.25}},
                                {{.mean = -2, .weight = 0.125, .lr = 2}}},
                    .arrivals = same_arrivals("0a 0p 0u 1a 1p 1u 0a 0p 0u 0a 1a 0g 1g", 2)});
  EXPECT_EQ(played.pulled[1], (std::vector<Values>{{-2, -2}}));
  EXPECT_EQ(played.pulled[0], (std::vector<Values>{{0, 0}, {2, 2}}));
  EXPECT_EQ(played.weights, (Values{1, 1}));
}

// Each worker clips its own gradient, over the slices of all servers.
TEST(ParameterServer, AGradientAloneIsClippedByItsOwnNorm) {
  const ServersPlayed played = play_servers({.options = {.mode = ServerMode::kAsync},
                                             .clip_norm = 0.5,
                                             .until = 2,
                                             .workers = {{{.mean = 3}}, {{.mean = 0.001}}},
                                             .arrivals = same_arrivals("0a 0p 1a 1p 0u 1u 0a 1a 0g 1g", 2)});
  const double clipped = 0.5 / std::sqrt(2.0 * kPlayedSlice);
  for (const Scalar w : played.weights) EXPECT_NEAR(w, -(clipped + 0.001), 1e-6);
}

std::vector<double> numbers_of(const Totals& of) {
  return {double(of.steps), double(of.samples), of.weight, of.loss, of.correct};
}

TEST(ParameterServer, TotalsAddUpWhatWasPushed) {
  const WorkersReport report =
      play_servers({.options = {.mode = ServerMode::kAsync},
                    .until = 3,
                    .workers = {{{.weight = 1.5, .samples = 2, .loss = 3, .correct = 1},
                                 {.weight = 2.5, .samples = 4, .loss = 5, .correct = 2}},
                                {{.weight = 8, .samples = 16, .loss = 32, .correct = 7}}},
                    .arrivals = same_arrivals("0a 0p 1a 1p 0u 1u 0a 0p 0u 0a 1a 0g 1g", 2)})
          .report;
  EXPECT_EQ(numbers_of(report.totals), (std::vector<double>{3, 22, 12, 40, 10}));
  EXPECT_EQ(std::tuple(report.workers[0].samples, report.workers[0].steps, report.workers[1].samples),
            std::tuple(6, 2, 16));
}

// ---- bounded --------------------------------------------------------------------------------------------

// Worker 0 comes back when the first server has the gradients of both workers, but the second one only its
// own: with a bound of 0 it must get both of both.
ServersPlayed play_late_server(ServerMode mode) {
  return play_servers(
      {.options = {.mode = mode, .staleness = 0},
       .until = 4,
       .workers = {{{.mean = 1}, {.mean = 4}}, {{.mean = 2}, {.mean = 8}}},
       .arrivals = {"0a 0p 1a 1p 0u 1u 0a 0p 1a 1p 0u 1u 0a 1a 0g 1g", "0p 1p 0u 0p 1u 1p 0u 1u 0g 1g"}});
}

TEST(ParameterServer, BoundedWorkersGetFromEachServerWhatTheFirstHasWhenItLetsThemGo) {
  const ServersPlayed bounded = play_late_server(ServerMode::kBounded);
  EXPECT_EQ(bounded.pulled[0][1], (Values{-3, -3}));
  EXPECT_EQ(bounded.pulled[1][1], (Values{-3, -3}));
  EXPECT_EQ(bounded.weights, (Values{-15, -15}));
  EXPECT_EQ(bounded.report.workers[0].staleness, (std::vector<Index>{4})) << "versions 0 and 2 of both";
  EXPECT_EQ(bounded.report.workers[1].staleness, (std::vector<Index>{0, 4})) << "after worker 0 each time";
}

TEST(ParameterServer, WithoutABoundAWorkerGetsWhatIsThere) {
  const ServersPlayed free = play_late_server(ServerMode::kAsync);
  EXPECT_EQ(free.pulled[0][1], (Values{-3, -1}));
  EXPECT_EQ(free.weights, (Values{-15, -15}));
}

// ---- backup workers -------------------------------------------------------------------------------------

// Two of three make a step: workers 0 and 1, then 1 and 2, then 0 and 1 again.
ServersPlay backup_play() {
  return {.options = {.mode = ServerMode::kSync, .backup_workers = 1},
          .until = 3,
          .workers = {{{.mean = 4, .weight = 1, .samples = 10, .loss = 1, .correct = 1},
                       {.mean = 50, .weight = 9, .samples = 11, .loss = 9, .correct = 9},
                       {.mean = 6, .weight = 4, .samples = 12, .loss = 3, .correct = 3}},
                      {{.mean = 8, .weight = 3, .samples = 20, .loss = 5, .correct = 5},
                       {.mean = 1, .weight = 2, .samples = 21, .loss = 7, .correct = 7},
                       {.mean = -2, .weight = 4, .samples = 22, .loss = 11, .correct = 11}},
                      {{.mean = 70, .weight = 5, .samples = 30, .loss = 13, .correct = 13},
                       {.mean = 5, .weight = 6, .samples = 31, .loss = 17, .correct = 17},
                       {.mean = 90, .weight = 7, .samples = 32, .loss = 19, .correct = 19}}},
          .arrivals = {"0a 0p 1a 1p 2a 2p 0u 1u 2u 0a 0p 1a 1p 2a 2p 1u 2u 0u 0a 0p 1a 1p 2a 2p 1u 0u 2u "
                       "0a 1a 2a 0g 1g 2g"}};
}

// By hand: (1 * 4 + 3 * 8) / 4 = 7, then (2 * 1 + 6 * 5) / 8 = 4, then (4 * 6 + 4 * -2) / 8 = 2.
const std::vector<Scalar> kBackupSteps{0, -7, -11, -13};

TEST(ParameterServer, AStepOfSeveralIsTheMeanByWeightsOfThoseThatCameFirst) {
  const ServersPlayed played = play_servers(backup_play());
  EXPECT_EQ(played.weights, Values{kBackupSteps[3]});
  for (const auto& pulls : played.pulled) {
    ASSERT_EQ(pulls.size(), 3u);
    for (std::size_t step = 0; step < 3; ++step) EXPECT_EQ(pulls[step], Values{kBackupSteps[step]});
  }
}

// Whatever comes to the second server first: pushes, refused ones, what the first one decided, a pull.
TEST(ParameterServer, AllServersTakeWhatTheFirstDecides) {
  const std::string pulls = "0p 1p 2p ", last = "0u 1u 3d 2u 0g 1g 2g 3g";
  for (const std::string first_step :
       {"0u 1u 3d 2u 0p 1p 2p ", "3d 1u 0u 2u 0p 1p 2p ", "2u 0u 1u 3d 0p 1p 2p ", "0u 2u 3d 1u 0p 1p 2p ",
        "0u 3d 0p 1u 1p 2u 2p "}) {
    for (const std::string second_step : {"1u 2u 3d 0u 0p 1p 2p ", "0u 1u 2u 1p 2p 3d 0p "}) {
      SCOPED_TRACE(first_step + second_step);
      ServersPlay play = backup_play();
      play.arrivals.push_back(pulls + first_step + second_step + last);
      const ServersPlayed played = play_servers(play);
      EXPECT_EQ(played.weights, (Values{kBackupSteps[3], kBackupSteps[3]}));
      for (const auto& pulled : played.pulled)
        for (std::size_t step = 0; step < 3; ++step)
          EXPECT_EQ(pulled[step], (Values{kBackupSteps[step], kBackupSteps[step]}));
    }
  }
}

TEST(ParameterServer, WhatCameTooLateIsCountedWithItsSamples) {
  const WorkersReport report = play_servers(backup_play()).report;
  constexpr double kLoss = 1 + 5 + 7 + 17 + 3 + 11;
  EXPECT_EQ(numbers_of(report.totals),
            (std::vector<double>{3, 10 + 20 + 21 + 31 + 12 + 22, 1 + 3 + 2 + 6 + 4 + 4, kLoss, kLoss}));
  const std::vector<Index> dropped{1, 0, 2}, dropped_samples{11, 0, 30 + 32};
  const std::vector<Index> samples{10 + 12, 20 + 21 + 22, 31};
  for (std::size_t worker = 0; worker < 3; ++worker) {
    SCOPED_TRACE(worker);
    EXPECT_EQ(report.workers[worker].computed, 3);
    EXPECT_EQ(report.workers[worker].dropped, dropped[worker]);
    EXPECT_EQ(report.workers[worker].dropped_samples, dropped_samples[worker]);
    EXPECT_EQ(report.workers[worker].steps, 3 - dropped[worker]);
    EXPECT_EQ(report.workers[worker].samples, samples[worker]);
  }
}

TEST(ParameterServer, MomentsAreThoseOfTheGradientsThatWereTaken) {
  ServersPlay play = backup_play();
  for (auto& pushes : play.workers)
    for (PushedGradient& push : pushes) push.moments = {push.mean, push.weight};
  const std::vector<std::vector<double>> expected{{4, 1}, {8, 3}, {1, 2}, {5, 6}, {6, 4}, {-2, 4}};
  EXPECT_EQ(play_servers(play).moments, expected);
}

// Of the mean, over the slices of all servers.
TEST(ParameterServer, AStepOfSeveralIsClippedAsAWhole) {
  ServersPlay play = backup_play();
  play.clip_norm = 3 * std::sqrt(2.0 * kPlayedSlice);  // a norm with which all weights are 3
  play.arrivals.push_back("0p 1p 2p 0u 1u 3d 2u 0p 1p 2p 1u 2u 3d 0u 0p 1p 2p 0u 1u 3d 2u 0g 1g 2g 3g");
  for (const Scalar w : play_servers(play).weights) EXPECT_NEAR(w, -(3 + 3 + 2), 1e-5);
}

// ---- bad numbers ----------------------------------------------------------------------------------------

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A step of two that had one gradient when worker 1 met a bad number, and never got the other.
TEST(ParameterServer, AStepThatWasNeverMadeLeavesNothingUncounted) {
  const ServersPlayed played =
      play_servers({.options = {.mode = ServerMode::kSync, .backup_workers = 1},
                    .until = 5,
                    .workers = {{{.mean = 4, .samples = 10}}, {{.mean = kNan, .samples = 20}}, {}},
                    .arrivals = {"0a 0p 1a 1p 0u 1b 1a 2a 0a 0g 1g 2g", "0p 1p 0u 0g 1g 2g 3g"}});
  EXPECT_EQ(played.weights, (Values{0, 0}));
  EXPECT_EQ(played.report.totals.steps, 0);
  EXPECT_EQ(played.report.totals.samples, 0);
  EXPECT_EQ(played.report.workers[0].computed, 1);
  EXPECT_EQ(played.report.workers[0].dropped, 1);
  EXPECT_EQ(played.report.workers[0].dropped_samples, 10);
  EXPECT_EQ(played.report.workers[1].computed, 0) << "a bad gradient is not pushed";
}

TEST(ParameterServer, ABadGradientStopsTheOthersAndLeavesTheWeightsAsTheyWere) {
  for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kBounded}) {
    const ServersPlayed played =
        play_servers({.options = {.mode = mode},
                      .until = 50,
                      .workers = {{{.mean = 4}}, {{.mean = kNan}}},
                      .arrivals = same_arrivals("0a 0p 1a 1p 1b 0u 0a 1a 0g 1g", 2)});
    EXPECT_EQ(played.weights, (Values{-4, -4}));
    EXPECT_EQ(played.report.totals.steps, 1);
  }
}

// Whatever the others do meanwhile.
TEST(ParameterServer, TheErrorNamesTheReplicaWhoseNumberIsBad) {
  for (const AsynchronousCase& one : cases()) {
    SCOPED_TRACE(one.name);
    Config config = tiny_config();
    config.distribute.strategy = "parameter_server";
    config.distribute.reduction = Reduction::kNative;
    config.distribute.mode = one.mode;
    config.distribute.backup_workers = one.backup_workers;
    config.train.replicas = 3;
    config.train.global_batch = 15;
    config.debug.nan_replica = 1;
    config.debug.nan_step = 2;
    config.debug.nan_steps = 1000;
    try {
      train_tiny_on(4, config);
      FAIL() << "training went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitTraining);
      expect_parts(error.what(), {"replica 1: the loss itself is not finite"});
    }
  }
}

}  // namespace lockstep::test::parameter_server_test
