// Replicas that should be equal and are not: found, told with the tensor and the ranks, or made equal again.
#include "train/loop/replica_check.h"
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "support/error_text.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::replica_check_test {

struct Case {
  std::string strategy;
  Index ranks_per_node = 0;
  Index flip_step = 3;  // that ends with all replicas equal
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.strategy;
}

Config flipped(const Case& test, Index rank) {
  Config config = test::tiny_config();
  config.distribute.strategy = test.strategy;
  config.distribute.average_every = 2;
  config.debug.ranks_per_node = test.ranks_per_node;
  config.comm.verify_every = 2;
  config.debug.flip_rank = rank;
  config.debug.flip_step = test.flip_step;
  return config;
}

std::string error_of(int ranks, const Config& config) {
  try {
    test::train_tiny_on(ranks, config);
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.exit_code(), kExitComm);
    return error.what();
  }
  return "";
}

class ReplicasThatDiffer : public testing::TestWithParam<Case> {};

TEST_P(ReplicasThatDiffer, AreNamedWithTheTensorAndTheRanks) {
  const std::string error = error_of(3, flipped(GetParam(), 1));
  EXPECT_TRUE(error.starts_with("step 4: ranks that must hold the same do not: 4.bias differs by up to "))
      << error;
  EXPECT_NE(error.find(", rank 1 against ranks 0, 2. "), std::string::npos) << error;
  EXPECT_EQ(error.find("by up to 0, "), std::string::npos) << error;
}

TEST_P(ReplicasThatDiffer, AreMadeEqualAgainIfThatIsAskedFor) {
  Config config = flipped(GetParam(), 0);  // the lowest rank: it is not that which is right
  config.comm.on_desync = OnDesync::kRebroadcast;
  const test::TinyResult repaired = test::train_tiny_on(3, config);
  EXPECT_EQ(repaired.training.repairs, 1);
  config.debug.flip_rank = -1;
  const test::TinyResult clean = test::train_tiny_on(3, config);
  EXPECT_EQ(clean.training.repairs, 0);
  EXPECT_EQ(repaired.weights, clean.weights);
}

TEST_P(ReplicasThatDiffer, AreNotLookedAtWithoutLeave) {
  Config config = flipped(GetParam(), 1);
  config.comm.verify_every = 0;
  EXPECT_EQ(error_of(3, config), "");
}

INSTANTIATE_TEST_SUITE_P(Strategies, ReplicasThatDiffer,
                         testing::Values(Case{"allreduce"}, Case{"zero1"}, Case{"central_storage", 1},
                                         Case{"parameter_server"}, Case{"local_sgd"}),
                         [](const auto& test) { return test.param.strategy; });

// The last slice of a node's weights is that of its second rank, which rank 0 compares with nobody.
TEST(ReplicaCheck, WhatOthersFindIsToldToAll) {
  const std::string error = error_of(4, flipped({.strategy = "central_storage", .ranks_per_node = 2}, 3));
  EXPECT_TRUE(error.starts_with("step 4: ranks that must hold the same do not: 4.bias differs by up to "))
      << error;
  EXPECT_NE(error.find(", rank 3 against rank 1. "), std::string::npos) << error;
}

// Every strategy that promises identical replicas is held to it while it trains.
TEST(ReplicaCheck, FindsNothingWhereNothingIsWrong) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    SCOPED_TRACE(entry.name);
    for (const Index ranks_per_node : {0, 2}) {
      Config config = flipped({entry.name, ranks_per_node}, -1);
      config.comm.verify_every = 1;
      EXPECT_EQ(error_of(4, config), "");
    }
  }
}

// Weights that two ranks hold the same of while they are not `apart`, and nothing else.
class WeightsOnly final : public SynchronousStrategy {
 public:
  explicit WeightsOnly(Communicator& comm) : comm_(comm) {}
  ReplicatedState replicated() override {
    if (apart) return {};
    return {.among = &comm_, .parts = {{"weights", weights_}}};
  }
  std::span<Scalar> weights(Index) override { return weights_; }
  std::span<const Scalar> gather_model() override { return weights_; }
  SavedState saved_state() override { return {}; }
  void start() override {}
  void begin_step(std::span<const Index>, double) override {}
  void bucket_ready(const Bucket&, const PartialGrads&) override {}
  std::size_t progress() override { return 0; }
  void finish_exchange() override {}
  StepOutcome update(const UpdateRequest&) override { return {}; }
  bool apart = false;

 private:
  Communicator& comm_;
  std::vector<Scalar> weights_ = {1, 2, 3};
};

TEST(ReplicaCheck, FindsRanksThatHaveMadeAnotherNumberOfSteps) {
  for (const Index steps_ahead : {0, 1}) {
    std::atomic<std::uint64_t> sum = 0;
    run_thread_ranks(2, [&](Communicator& comm) {
      WeightsOnly strategy(comm);
      ReplicaCheck check(comm, strategy, {.verify_every = 1});
      const Index steps = 3 + (comm.rank() == 1 ? steps_ahead : 0);
      const std::optional<std::uint64_t> checksum = check.checksum(steps);
      ASSERT_TRUE(checksum);
      sum += *checksum;
      if (steps_ahead == 0) return check.report(steps);
      test::expect_parts(test::error_text<AgreedError>([&] { check.report(steps); }),
                         {"the number of steps differs, rank 1 against rank 0"});
    });
    EXPECT_EQ(sum == 0, steps_ahead == 0);
  }
}

TEST(ReplicaCheck, AComparisonThatIsDueWhileReplicasDifferOnPurposeIsMadeOnceTheyAreEqual) {
  run_thread_ranks(2, [&](Communicator& comm) {
    WeightsOnly strategy(comm);
    ReplicaCheck check(comm, strategy, {.verify_every = 4});
    for (Index step = 1; step <= 8; ++step) {
      strategy.apart = step % 6 != 0;
      EXPECT_EQ(check.checksum(step).has_value(), step == 6) << step;
    }
    strategy.apart = false;
    EXPECT_TRUE(check.checksum(9)) << "due since step 8";
    EXPECT_FALSE(check.checksum(10));
  });
}

}  // namespace lockstep::replica_check_test
