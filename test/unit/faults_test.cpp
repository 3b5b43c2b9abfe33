// An error of one rank at any call of a small training ends all ranks with an error, under every strategy;
// calls that come late change no bit; a message that never comes is noticed.
#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/faulty_communicator.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::test::faults_test {

constexpr int kRanks = 3;

struct Case {
  std::string name, strategy;
  Index ranks_per_node = 0;
  ServerMode mode = ServerMode::kSync;
  std::string algorithm = "mpi";
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.name;
}

Config config_of(const Case& test) {
  Config config = tiny_config();
  config.train.epochs = 0;
  config.train.steps = 3;
  config.train.replicas = 6;
  config.train.global_batch = 24;
  config.distribute.strategy = test.strategy;
  config.distribute.mode = test.mode;
  config.distribute.algorithm = test.algorithm;
  config.distribute.average_every = 2;
  config.debug.ranks_per_node = test.ranks_per_node;
  config.comm.verify_every = 2;
  if (test.mode == ServerMode::kAsync) config.distribute.reduction = Reduction::kNative;
  return config;
}

// Weights and calls of rank 0. Errors: of the first rank that failed.
struct Outcome {
  std::vector<Scalar> weights;
  CallCount count;
};

Outcome train(const Config& config, const Fault& fault) {
  Outcome outcome;
  run_thread_ranks(kRanks, [&](Communicator& comm) {
    CallCount count;
    FaultyCommunicator faulty(comm, fault, count);
    TinyResult result = train_tiny(faulty, config);
    if (comm.rank() == 0) outcome = {std::move(result.weights), count};
  });
  return outcome;
}

std::string error_of(const Config& config, const Fault& fault) {
  return error_or<Error>("", [&] { train(config, fault); });
}

class Faults : public testing::TestWithParam<Case> {};

// Runs whose bits do not depend on the order in which messages arrive.
class Delays : public Faults {};

TEST_P(Faults, OfAnyCallOfAnyRankEndAllRanks) {
  const Config config = config_of(GetParam());
  const Index calls = train(config, {}).count.calls;
  ASSERT_GT(calls, 20);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (Index call = 0; call < calls / 2; ++call) {  // a server makes about half as many calls
      SCOPED_TRACE("call " + std::to_string(call) + " of rank " + std::to_string(rank));
      const std::string error = error_of(config, {Fault::Kind::kFail, rank, call});
      EXPECT_NE(error.find("fails on purpose"), std::string::npos) << error;
    }
  }
}

TEST_P(Delays, ChangeNoBit) {
  const Config config = config_of(GetParam());
  const std::vector<Scalar> expected = train(config, {}).weights;
  for (const Index delayed : {2, 3, 5}) EXPECT_EQ(train(config, {.delayed = delayed}).weights, expected);
}

const auto kName = [](const auto& test) { return test.param.name; };

const auto kSameBits = testing::Values(Case{"allreduce", "allreduce"},
                                       Case{"allreduce_shared", "allreduce", 0, ServerMode::kSync, "shared"},
                                       Case{"zero1", "zero1"}, Case{"central_storage", "central_storage"},
                                       Case{"central_storage_on_nodes", "central_storage", 1},
                                       Case{"servers", "parameter_server"}, Case{"local_sgd", "local_sgd"});

INSTANTIATE_TEST_SUITE_P(Strategies, Delays, kSameBits, kName);
INSTANTIATE_TEST_SUITE_P(Strategies, Faults, kSameBits, kName);
INSTANTIATE_TEST_SUITE_P(Async, Faults,
                         testing::Values(Case{"async", "parameter_server", 0, ServerMode::kAsync}), kName);

TEST(DroppedMessages, OfAWorkerOrServerAreNoticedWhereWorkersStepAlone) {
  Config config = config_of({"async", "parameter_server", 0, ServerMode::kAsync});
  config.distribute.timeout_seconds = 0.4;
  int noticed = 0;
  for (int rank = 0; rank < kRanks; ++rank)
    for (Index call = 0; call < 6; ++call) {
      SCOPED_TRACE("exchange " + std::to_string(call) + " of rank " + std::to_string(rank));
      const std::string error = error_of(config, {Fault::Kind::kDrop, rank, call});
      // An exchange that only receives sends nothing that could be missed.
      EXPECT_TRUE(error.empty() || error.find("no sign of life from ") != std::string::npos ||
                  error.find(" gradients, but the servers took ") != std::string::npos)
          << error;
      noticed += error.empty() ? 0 : 1;
    }
  EXPECT_GE(noticed, kRanks * 2);
}

}  // namespace lockstep::test::faults_test
