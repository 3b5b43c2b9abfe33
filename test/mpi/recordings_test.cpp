// Runs with asynchronous workers, recorded and repeated; and who is named when somebody is silent.
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/errors.h"
#include "support/asynchronous_cases.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::recordings_test {
namespace {

using test::AsynchronousCase;
using test::cases;
using test::config_for;
using test::set_keys;
using test::TinyResult;
using test::train_tiny;
using test::walk;

TEST(Recordings, ARecordedRunIsRepeatedBitForBit) {
  const test::TemporaryDirectory directory;
  walk([&](Communicator& comm, const AsynchronousCase& one, Config config) {
    config.model.layers = "dense(9) batch_norm relu dropout(0.2) dense(3)";
    config.run.dir = directory / ("run" + std::to_string(comm.size()) + one.name +
                                  std::to_string(config.distribute.servers));
    std::filesystem::create_directories(config.run.dir);
    set_keys(config, "distribute.record=true; debug.delay_rank=0; debug.delay_ms=3");
    const TinyResult recorded = train_tiny(comm, config);
    Config again = config;
    again.distribute.record = false;
    again.distribute.replay = config.run.dir;
    again.debug.delay_rank = comm.size() - config.distribute.servers - 1;  // somebody else is slow
    const TinyResult replayed = train_tiny(comm, again);
    EXPECT_EQ(replayed.weights, recorded.weights);
    EXPECT_EQ(replayed.state, recorded.state);
    EXPECT_EQ(replayed.training.workers->workers.front().staleness,
              recorded.training.workers->workers.front().staleness);
  });
}

// What a run on threads ends with.
std::string failure_of(int ranks, const Config& config) {
  try {
    run_thread_ranks(ranks, [&](Communicator& comm) { train_tiny(comm, config); });
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Recordings, ARecordingThatDoesNotFitIsRefused) {
  if (test::under_mpi()) return;
  const test::TemporaryDirectory directory;
  run_thread_ranks(1, [&](Communicator& comm) {
    Config config = config_for(comm, 0, ServerMode::kAsync);
    config.distribute.servers = 1;
    config.distribute.replay = directory.path();
    EXPECT_NE(failure_of(2, config).find("arrivals.0.txt"), std::string::npos) << "missing";
    for (const std::string text :
         {"", "something else", "lockstep-arrivals 3 4\n0a 1a 2a 0p\n", "lockstep-arrivals 1 4\n0a 0p 0u\n",
          "lockstep-arrivals 1 3\n0a 7a 0p\n", "lockstep-arrivals 1 3\n0a 0x 0p\n",
          "lockstep-arrivals 1 3\n0 0 0\n", "lockstep-arrivals 1 3\n0a 0p 0u\n"}) {
      std::ofstream(directory / "arrivals.0.txt") << text;
      EXPECT_NE(failure_of(2, config).find("recording"), std::string::npos) << failure_of(2, config);
    }
  });
}

// Whatever the others do meanwhile: go on (async), wait for it (bounded), or do without it (backup workers).
TEST(Silence, WhoIsSilentIsNamed) {
  if (test::under_mpi()) return;
  for (const AsynchronousCase& one : cases()) {
    for (const int servers : {1, 2}) {
      run_thread_ranks(2, [&](Communicator& comm) {
        if (comm.rank() > 0) return;
        Config config = config_for(comm, 0, one.mode);
        config.distribute.servers = servers;
        config.distribute.backup_workers = one.backup_workers;
        set_keys(
            config,
            "distribute.staleness=0; distribute.timeout_seconds=0.3; train.replicas=3; train.global_batch=3; "
            "train.epochs=100000; eval.every=never; debug.delay_rank=1; debug.delay_ms=1200");
        const std::string failure = failure_of(3 + servers, config);
        EXPECT_NE(failure.find("no sign of life from rank 1 "), std::string::npos)
            << one.name << ", " << servers << " servers: " << failure;
      });
    }
  }
}

TEST(Recordings, AReplayOfAnotherRunIsRefused) {
  const test::TemporaryDirectory directory;
  test::on_ranks([&](Communicator& comm) {
    if (comm.size() < 2) return;
    Config config = config_for(comm, 1, ServerMode::kAsync);
    config.run.dir = directory / ("run" + std::to_string(comm.size()));
    std::filesystem::create_directories(config.run.dir);
    set_keys(config, "distribute.record=true; eval.every=0.5 epochs");
    train_tiny(comm, config);
  });
  if (test::under_mpi()) return;
  run_thread_ranks(1, [&](Communicator& comm) {
    Config config = config_for(comm, 0, ServerMode::kAsync);
    config.distribute.servers = 1;
    config.distribute.replay = directory / "run2";
    const std::string failure = failure_of(2, config);
    EXPECT_NE(failure.find("replay the config that was recorded"), std::string::npos) << failure;
  });
}

}  // namespace
}  // namespace lockstep::recordings_test
