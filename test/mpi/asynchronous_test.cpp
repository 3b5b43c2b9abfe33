// Parameter servers with asynchronous workers: what is counted, what is promised, how runs
// are recorded and repeated, and who is named when somebody is silent.
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/base/errors.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/asynchronous_cases.h"
#include "support/saving_cases.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::asynchronous_test {
namespace {

using namespace test;

Index plan_steps(const Config& config, Index workers) {
  const Index batches =
      (101 * (config.data.mode == DataMode::kFull ? workers : 1) + config.train.global_batch - 1) /
      config.train.global_batch;
  const bool each_a_step = config.distribute.mode != ServerMode::kSync;
  return static_cast<Index>(config.train.epochs) * batches * (each_a_step ? workers : 1);
}

TEST(Asynchronous, EveryGradientIsCountedOnceWhoeverIsSlow) {
  walk([](Communicator& comm, const AsynchronousCase& one, Config config) {
    const Index workers = comm.size() - config.distribute.servers;
    for (const DataMode mode : {DataMode::kShard, DataMode::kFull}) {
      config.data.mode = mode;
      config.debug.delay_rank = workers - 1;
      config.debug.delay_ms = 5;
      const TinyResult result = train_tiny(comm, config);
      const WorkersReport& report = *result.training.workers;
      ASSERT_EQ(std::ssize(report.workers), workers);
      Index steps = 0;
      Index samples = 0;
      for (const WorkerRecord& worker : report.workers) {
        EXPECT_EQ(worker.computed, worker.steps + worker.dropped);
        const Index applied = std::accumulate(worker.staleness.begin(), worker.staleness.end(), Index{0});
        EXPECT_EQ(applied, worker.steps * (one.backup_workers > 0 ? 1 : config.distribute.servers));
        EXPECT_TRUE(one.backup_workers > 0 || worker.dropped == 0);
        steps += worker.steps;
        samples += worker.samples;
      }
      const Index expected = plan_steps(config, workers);
      EXPECT_EQ(report.totals.steps, expected);
      EXPECT_EQ(steps, expected * (one.backup_workers > 0 ? workers - one.backup_workers : 1));
      EXPECT_EQ(report.totals.samples, samples);
      EXPECT_EQ(result.training.progress.samples, samples);
    }
  });
}

TEST(Asynchronous, BackupWorkersAreNotWaitedFor) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 3) return;
    Config config = config_for(comm, 1, ServerMode::kSync);
    set_keys(config, "distribute.backup_workers=1; debug.delay_rank=0; debug.delay_ms=20");
    const WorkersReport report = *train_tiny(comm, config).training.workers;
    EXPECT_GT(report.workers.front().dropped, 0);
    EXPECT_GT(report.workers.front().dropped_samples, 0);
    EXPECT_LT(report.workers.front().steps, report.workers.back().steps);
  });
}

const WorkerRecord& fastest(const WorkersReport& report) {
  return *std::ranges::max_element(report.workers, {}, &WorkerRecord::max_ahead);
}

// While a worker computes, another one can push at most what takes it from as far behind as the bound allows
// to as far ahead, and one more.
TEST(Asynchronous, BoundedNeverExceedsItsBound) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 3) return;
    for (const Index bound : {0, 1, 3}) {
      SCOPED_TRACE(bound);
      Config config = config_for(comm, 1, ServerMode::kBounded);
      config.distribute.staleness = bound;
      set_keys(config, "debug.delay_rank=0; debug.delay_ms=5");
      const WorkersReport report = *train_tiny(comm, config).training.workers;
      const Index others = comm.size() - 2;
      for (const WorkerRecord& worker : report.workers) {
        EXPECT_LE(worker.max_ahead, bound);
        EXPECT_LE(std::ssize(worker.staleness) - 1, others * (2 * bound + 1));
      }
      EXPECT_EQ(fastest(report).max_ahead, bound);  // the others run into it
    }
  });
}

TEST(Asynchronous, WithoutABoundTheSlowWorkerFallsBehind) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 3) return;
    Config config = config_for(comm, 1, ServerMode::kAsync);
    set_keys(config, "debug.delay_rank=0; debug.delay_ms=50; train.epochs=12");
    const WorkersReport report = *train_tiny(comm, config).training.workers;
    EXPECT_GT(fastest(report).max_ahead, 4);
    EXPECT_LT(report.workers.front().samples, fastest(report).samples);
    EXPECT_GT(report.mean_staleness(), 0);
  });
}

// Batches that each replica has taken, of the checkpoint of `step`.
std::vector<Index> batches_taken(const std::string& directory, Index step, Index replicas) {
  std::vector<Index> taken(static_cast<std::size_t>(replicas));
  CheckpointReader(test::step_in(directory, step))
      .fill({{.array = "batches_taken",
              .size = replicas,
              .range = {0, replicas},
              .memory = as_buffer(std::span(taken)),
              .written = {}}});
  return taken;
}

// Two workers with two replicas each, then one with all four: no batch is used again, whichever replica was
// ahead. What was counted before goes on, but for how far ahead a worker was, which is no sum.
TEST(Asynchronous, AResumeOnFewerWorkersGoesOnBehindTheLastBatch) {
  if (test::under_mpi()) GTEST_SKIP() << "the number of ranks is given";
  for (const int slow : {0, 1}) {
    const test::TemporaryDirectory files;
    const std::string directory = files.path().string();
    Config config;
    Index ahead = 0;
    run_thread_ranks(3, [&](Communicator& comm) {
      Config mine = config_for(comm, 1, ServerMode::kBounded);
      set_keys(mine, "distribute.staleness=2; train.replicas=4; train.global_batch=20");
      mine.checkpoint.dir = directory;
      set_keys(mine, "checkpoint.every=15 steps; checkpoint.keep=100");
      mine.debug.delay_rank = slow;
      mine.debug.delay_ms = 5;
      const WorkersReport report = *train_tiny(comm, mine).training.workers;
      if (comm.rank() > 0) return;
      config = mine;
      ahead = fastest(report).max_ahead;
    });
    const std::vector<Index> before = batches_taken(directory, 15, 4);
    EXPECT_EQ(before[0] > before[2], slow == 1) << before[0] << " and " << before[2];
    EXPECT_EQ(ahead, 2);
    config.run.resume = test::step_in(directory, 15);
    config.checkpoint.every = "1 step";
    for (const int ranks : {2, 3}) {
      config.debug.delay_ms = ranks == 3 ? 5 : 0;
      run_thread_ranks(ranks, [&](Communicator& comm) {
        const WorkersReport report = *train_tiny(comm, config).training.workers;
        EXPECT_LE(fastest(report).max_ahead, 2);
        if (comm.rank() > 0 || ranks == 3) return;
        EXPECT_EQ(report.workers.front().computed, report.totals.steps) << "of both workers before";
      });
      if (ranks == 3) continue;
      const std::vector<Index> after = batches_taken(directory, 16, 4);
      EXPECT_EQ(after, std::vector<Index>(4, std::ranges::max(before) + 1));
    }
  }
}

// Nobody is in between: the same steps as without servers.
TEST(Asynchronous, OneWorkerAloneTakesTheStepsOfOneReplica) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    for (const std::string optimizer : {"sgd", "adam", "lamb", "muon"}) {
      for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kBounded}) {
        SCOPED_TRACE(optimizer);
        Config config = config_for(comm, comm.size() - 1, mode);
        config.optimizer.optimizer = optimizer;
        set_keys(config, "train.clip_norm=0.5; train.weight_decay=0.01; train.accumulate=2");
        config.distribute.staleness_lr = true;  // of no staleness
        const TinyResult result = train_tiny(comm, config);
        Config plain = config;
        plain.distribute.strategy = "allreduce";
        const TinyResult expected = train_tiny_alone(plain);
        EXPECT_EQ(result.weights, expected.weights);
        EXPECT_EQ(result.training.evaluation()->loss, expected.training.evaluation()->loss);
      }
    }
  });
}

TEST(Asynchronous, RunningMomentsAreTheServers) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    Config config = config_for(comm, comm.size() - 1, ServerMode::kAsync);
    config.model.layers = "batch_norm dense(9) batch_norm relu dense(3)";
    for (const Index precise : {0, 2}) {  // followed, or measured anew of two batches
      config.eval.precise_bn = precise;
      const TinyResult result = train_tiny(comm, config);
      Config plain = config;
      plain.distribute.strategy = "allreduce";
      const TinyResult expected = train_tiny_alone(plain);
      ASSERT_EQ(result.state.size(), expected.state.size());
      for (std::size_t i = 0; i < expected.state.size(); ++i)
        EXPECT_NEAR(result.state[i], expected.state[i], 1e-4 * std::max(1.0F, std::abs(expected.state[i])));
    }
  });
}

// Of all workers: the moments of the features, whoever saw them.
TEST(Asynchronous, RunningMomentsFollowEveryWorker) {
  walk([](Communicator& comm, const AsynchronousCase&, Config config) {
    set_keys(config, "model.layers=batch_norm(momentum=0.02) dense(3); train.epochs=20");
    const TinyResult moving = train_tiny(comm, config);
    config.eval.precise_bn = 1000;
    const TinyResult precise = train_tiny(comm, config);
    for (std::size_t i = 0; i < moving.state.size(); ++i)
      EXPECT_NEAR(moving.state[i], precise.state[i], 0.35F * std::max(1.0F, precise.state[i])) << i;
  });
}

TEST(Asynchronous, ABadNumberStopsAllRanks) {
  walk([](Communicator& comm, const AsynchronousCase&, Config config) {
    set_keys(config, "model.layers=dense(9) dense(3); train.lr=1e6");
    try {
      train_tiny(comm, config);
      FAIL() << "training went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitTraining);
      EXPECT_NE(std::string(error.what()).find("replica"), std::string::npos) << error.what();
    }
  });
}

// Error feedback makes up for what a message loses, so that one worker alone stays close to the plain steps.
TEST(Asynchronous, PushesGoThroughTheWire) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() < 2) return;
    Config config = config_for(comm, comm.size() - 1, ServerMode::kAsync);
    config.optimizer.momentum = 0;
    const TinyResult exact = train_tiny(comm, config);
    for (const std::string codec : {"bf16", "fp16", "top_k"}) {
      SCOPED_TRACE(codec);
      config.distribute.compression = codec;
      config.distribute.top_k = 0.25;
      const TinyResult lossy = train_tiny(comm, config);
      EXPECT_NE(lossy.weights, exact.weights);
      for (std::size_t i = 0; i < exact.weights.size(); ++i)
        EXPECT_NEAR(lossy.weights[i], exact.weights[i], codec == "top_k" ? 0.1 : 2e-3);
    }
  });
}

TEST(Asynchronous, TrainingLearns) {
  walk([](Communicator& comm, const AsynchronousCase&, Config config) {
    set_keys(config, "train.epochs=20; train.lr=0.02; train.momentum=0.5");
    const TinyResult result = train_tiny(comm, config);
    EXPECT_GT(*result.training.evaluation()->accuracy, 0.55);
  });
}

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
}  // namespace lockstep::asynchronous_test
