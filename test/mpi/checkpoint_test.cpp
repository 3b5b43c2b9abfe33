// A run that goes on from a checkpoint ends as if it had never been interrupted; under another config it may
// be shorter, or audited from there on.
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/asynchronous_cases.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/saving_cases.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::checkpoint_test {
namespace {

using namespace test;

// The same run from a checkpoint: the rest of its losses, and the same end.
void expect_the_same_end(const TinyResult& whole, const TinyResult& rest) {
  EXPECT_TRUE(rest.weights == whole.weights);
  EXPECT_TRUE(rest.state == whole.state);
  EXPECT_TRUE(rest.average == whole.average);
  EXPECT_EQ(rest.training.progress.samples, whole.training.progress.samples);
  EXPECT_EQ(rest.training.evaluation()->loss, whole.training.evaluation()->loss);
  const std::vector<double> last(whole.losses.end() - std::ssize(rest.losses), whole.losses.end());
  EXPECT_EQ(rest.losses, last);
}

// Numbers of ranks as threads take turns. More than four ranks go on from one of the checkpoints; from which,
// each case and number of ranks has its own.
TEST(Checkpoint, ARunGoesOnAsIfItHadNotStopped) {
  for (Index turn = 0; const test::SavingCase& each : test::saving_cases()) {
    ++turn;
    SCOPED_TRACE(each.name);
    test::on_ranks(test::counts_of_turn(turn), [&](Communicator& comm) {
      const SharedDirectory directory(comm);
      Config config = saving_config(directory.path(), "4 steps");
      each.change(config);
      const TinyResult whole = train_tiny(comm, config);
      EXPECT_EQ(whole.save_failure, "");
      config.checkpoint.dir = "";
      for (const Index step : {4, 8, 12}) {  // in an epoch, and not where a log line or an average is
        if (comm.size() > 4 && (turn + comm.size() + step / 4) % 3 != 0) continue;
        config.run.resume = step_in(directory.path(), step);
        const TinyResult rest = train_tiny(comm, config);
        expect_the_same_end(whole, rest);
        if (comm.rank() == 0) {
          EXPECT_EQ(rest.losses.size(), whole.losses.size() - static_cast<std::size_t>(step));
        }
      }
    });
  }
}

// Writes take longer than an epoch here, so the writer is busy at most evaluations.
TEST(Checkpoint, TheBestIsKeptHoweverSlowTheDiskIs) {
  test::on_ranks({1, 2, 5}, [](Communicator& comm) {
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "1 steps");
    set_keys(config,
             "checkpoint.wait=false; train.keep=best; data.synthetic_validation_rows=20; checkpoint.keep=1; "
             "data.synthetic_noise=4; train.lr=0.5; train.epochs=6; eval.every=0.5 epochs");
    const TinyResult result = train_tiny(comm, config);
    EXPECT_EQ(result.save_failure, "");
    if (comm.rank() != 0) return;
    ASSERT_GT(result.evaluations.size(), 4U);
    ASSERT_EQ(result.evaluations.back().split, Split::kTest);
    const auto best = std::ranges::min_element(result.evaluations.begin(), result.evaluations.end() - 1, {},
                                               &EvalMetrics::loss);
    ASSERT_LT(best->progress.steps, result.training.progress.steps) << "the last is written in any case";
    EXPECT_EQ(CheckpointDirectory(directory.path()).best(), best->progress.steps);
    EXPECT_NO_THROW(CheckpointReader(step_in(directory.path(), best->progress.steps)));
    EXPECT_EQ(CheckpointDirectory(directory.path()).steps().size(), 2U) << "the last and the best";
  });
}

// What others have moved away a rank no longer sees: here rank 1 writes its part where rank 0 does not look.
TEST(Checkpoint, OneWhoseDirectoryIsGoneEndsWithAnError) {
  if (test::under_mpi()) GTEST_SKIP() << "ranks of this process";
  run_thread_ranks(2, [](Communicator& comm) {
    const test::TemporaryDirectory place;
    const CheckpointDirectory directory(place.path());
    const std::filesystem::path partial = directory.partial(1);
    if (comm.rank() == 1) std::filesystem::create_directory(partial);
    const Model model({.layers = "dense(2)"}, Shape{{3}});
    const std::vector<Scalar> weights(static_cast<std::size_t>(model.layout().size));
    const std::map<std::string, std::string> texts;
    CheckpointWriter writer(comm, directory, 1);
    CheckpointHeader header;
    header.progress.steps = 1;
    writer.start({.header = header,
                  .state = {},
                  .stored = {weights, {}},
                  .layout = &model.stored_layout(),
                  .input = model.input(),
                  .texts = texts});
    EXPECT_TRUE(writer.has(1)) << "it is being written";
    if (comm.rank() == 0) {
      while (!std::filesystem::exists(partial / "state-00000.json")) std::this_thread::yield();
      std::filesystem::remove_all(partial);
    }
    writer.finish();
    test::expect_parts(writer.last_failure(), {"rank 0: ", "step-000000001.partial' is gone: it was moved"});
    EXPECT_FALSE(writer.has(1)) << "whoever asks may try again";
  });
}

void choose(Config& config, const StrategyEntry& strategy) {
  config.distribute.strategy = strategy.name;
  if (strategy.has_servers) config.distribute.servers = 1;
}

// Strategies that keep one set of weights go on with each other's checkpoints. Half of the numbers of workers
// take turns, so that each strategy goes on with each.
TEST(Checkpoint, OnOtherRanksWithAnotherStrategyAndOtherThreads) {
  if (test::under_mpi()) GTEST_SKIP() << "the number of ranks is given";
  std::vector<StrategyEntry> strategies;
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (entry.promises.exact_resume && !entry.weights_per_replica) strategies.push_back(entry);
  }
  EXPECT_EQ(strategies.size(), 4U);
  for (Index turn = 0; const StrategyEntry& from : strategies) {
    ++turn;  // what goes on has other numbers than with the strategy before
    const test::TemporaryDirectory directory;
    Config config = saving_config(directory.path().string(), "7 steps");
    config.optimizer.optimizer = "adam";
    choose(config, from);
    const TinyResult whole = test::train_tiny_on(from.has_servers ? 4 : 3, config);
    config.checkpoint.dir = "";
    config.run.resume = step_in(directory.path().string(), 7);
    for (const StrategyEntry& to : strategies) {
      choose(config, to);
      for (const int ranks : ++turn % 2 == 0 ? std::vector<int>{1, 8} : std::vector<int>{2, 4}) {
        config.train.threads = ranks <= 2 ? 2 : 1;
        SCOPED_TRACE(fmt::format("{} with 3 workers, then {} with {}", from.name, to.name, ranks));
        run_thread_ranks(to.has_servers ? ranks + 1 : ranks, [&](Communicator& comm) {
          const TinyResult rest = train_tiny(comm, config);
          EXPECT_TRUE(rest.weights == whole.weights);
          EXPECT_TRUE(rest.state == whole.state);
          if (comm.rank() == 0) expect_the_same_end(whole, rest);
        });
      }
    }
  }
}

TEST(Checkpoint, LocalStepsGoOnOnOtherRanks) {
  if (test::under_mpi()) GTEST_SKIP() << "the number of ranks is given";
  for (const Index step : {5, 6, 8}) {  // before, at and between averages
    const test::TemporaryDirectory directory;
    Config config = saving_config(directory.path().string(), "1 step");
    set_keys(config,
             "distribute.strategy=local_sgd; distribute.average_every=3; distribute.local_after=3 steps; "
             "distribute.block_momentum=0.5");
    const TinyResult whole = test::train_tiny_on(2, config);
    config.checkpoint.dir = "";
    config.run.resume = step_in(directory.path().string(), step);
    for (const int ranks : {1, 3, 8}) {
      run_thread_ranks(ranks, [&](Communicator& comm) {
        const TinyResult rest = train_tiny(comm, config);
        EXPECT_TRUE(rest.weights == whole.weights) << ranks;
      });
    }
  }
}

// With lossy compression as long as the ranks are as many: what was lost is theirs.
TEST(Checkpoint, KeepsWhatMessagesHaveLost) {
  test::on_ranks([&](Communicator& comm) {
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "4 steps");
    set_keys(config, "distribute.reduction=native; distribute.compression=top_k; distribute.top_k=0.1");
    config.distribute.bucket_kib = 0;  // many buckets, the last of the arena first
    const TinyResult whole = train_tiny(comm, config);
    EXPECT_EQ(whole.save_failure, "");
    config.checkpoint.dir = "";
    config.run.resume = step_in(directory.path(), 8);
    expect_the_same_end(whole, train_tiny(comm, config));
  });
}

TEST(Checkpoint, KeepsWhatMessagesToEachServerHaveLost) {
  test::walk([](Communicator& comm, const test::AsynchronousCase& one, Config config) {
    if (one.backup_workers > 0) return;  // without error feedback
    const SharedDirectory directory(comm);
    config.checkpoint.dir = directory.path();
    set_keys(config, "checkpoint.every=1 epoch; distribute.compression=top_k");
    EXPECT_EQ(train_tiny(comm, config).save_failure, "");
    config.checkpoint.dir = "";
    config.run.resume = step_in(directory.path(), CheckpointDirectory(directory.path()).steps().back());
    EXPECT_NO_THROW(train_tiny(comm, config));
  });
}

// How often they have stepped, and from the weights that were saved: without a learning rate they stay.
TEST(Checkpoint, WorkersThatStepAloneGoOnWithTheirCounts) {
  test::walk([](Communicator& comm, const test::AsynchronousCase&, Config config) {
    const SharedDirectory first(comm);
    const SharedDirectory second(comm);
    config.checkpoint.dir = first.path();
    set_keys(config, "checkpoint.every=1 epoch; checkpoint.keep=100; train.epochs=4");
    const TinyResult whole = train_tiny(comm, config);
    const std::vector<Index> steps = CheckpointDirectory(first.path()).steps();
    ASSERT_GT(steps.size(), 1U);
    config.checkpoint.dir = second.path();
    config.schedule.lr = 0;
    config.run.resume = step_in(first.path(), steps.front());
    config.train.epochs = 1;
    test::expect_parts(test::error_text<AgreedError>([&] { train_tiny(comm, config); }), {"has only"});
    config.run.resume = step_in(first.path(), steps.back());
    config.train.epochs = 4;
    const TinyResult rest = train_tiny(comm, config);
    EXPECT_EQ(rest.training.progress.steps, whole.training.progress.steps);
    EXPECT_GT(rest.training.progress.steps, steps.back());
    ASSERT_TRUE(rest.training.workers.has_value());
    Index applied = 0;
    for (const WorkerRecord& worker : rest.training.workers->workers) applied += worker.steps;
    EXPECT_GT(applied, 0);
    const std::filesystem::path end = step_in(second.path(), rest.training.progress.steps);
    EXPECT_EQ(read_file(end / kCheckpointModel),
              read_file(std::filesystem::path(config.run.resume) / kCheckpointModel));
  });
}

// Of three blocks, so that of two and three ranks each has a share, and of four not.
TEST(Checkpoint, RanksShareTheModelFile) {
  if (test::under_mpi()) GTEST_SKIP() << "the number of ranks is given";
  Config config = saving_config("", "1 step");
  set_keys(config,
           "model.layers=dense(1500) batch_norm relu dense(1500) relu dense(3); train.epochs=0; "
           "train.steps=1; train.replicas=4");
  std::string right;
  for (const int ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const test::TemporaryDirectory directory;
    config.checkpoint.dir = directory.path().string();
    config.run.resume = "auto";
    const TinyResult whole = test::train_tiny_on(ranks, config);
    EXPECT_EQ(whole.save_failure, "");
    const std::filesystem::path checkpoint = step_in(config.checkpoint.dir, 1);
    const std::string model = read_file(checkpoint / kCheckpointModel);
    EXPECT_EQ((std::ssize(model) + kCheckedBytes - 1) / kCheckedBytes, 3);
    if (ranks == 1) right = model;
    EXPECT_TRUE(model == right);
    EXPECT_NO_THROW(CheckpointReader(checkpoint).verify(1, 0));
    config.run.resume = checkpoint.string();
    EXPECT_TRUE(test::train_tiny_on(ranks, config).weights == whole.weights);
  }
}

TEST(Checkpoint, KeepsTheNewestOnes) {
  test::on_ranks([&](Communicator& comm) {
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "3 steps");
    config.checkpoint.keep = 2;
    train_tiny(comm, config);
    comm.barrier();
    if (comm.rank() != 0) return;
    const std::vector<Index> steps = CheckpointDirectory(directory.path()).steps();
    EXPECT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps.front(), 18);  // the end
  });
}

TEST(Checkpoint, TheLogSaysTheBytesOfAllItsFiles) {
  const test::TemporaryDirectory directory;
  start_log(0);
  testing::internal::CaptureStdout();
  test::train_tiny_alone(saving_config(directory / "saved", "6 steps"));
  const std::string said = testing::internal::GetCapturedStdout();
  const CheckpointDirectory saved(directory / "saved");
  Index bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(saved.finished(18)))
    bytes += static_cast<Index>(file.file_size());
  test::expect_parts(said, {fmt::format("checkpoint of step 18: {} in ", human_bytes(bytes))});
}

// Training goes on, to the same end, and says so.
TEST(Checkpoint, AFailureDoesNotStopTraining) {
  const TinyResult right = test::train_tiny_alone(saving_config("", "never"));
  test::on_ranks([&](Communicator& comm) {
    const SharedDirectory directory(comm);
    const std::string file = directory.path() + "/file";
    if (comm.rank() == 0) std::ofstream(file) << "not a directory";
    comm.barrier();
    const TinyResult result = train_tiny(comm, saving_config(file + "/below", "4 steps"));
    EXPECT_NE(result.save_failure.find("cannot create"), std::string::npos) << result.save_failure;
    EXPECT_TRUE(result.weights == right.weights);
  });
}

// Instead of waiting for steps that never come, or training on without an end.
TEST(ResumedRuns, ARunThatIsShorterThanItsCheckpointIsRefused) {
  for (const SavingCase& each : saving_cases()) {
    if (each.name != "allreduce" && each.name != "local_sgd") continue;
    SCOPED_TRACE(each.name);
    on_ranks([&](Communicator& comm) {
      const SharedDirectory directory(comm);
      Config config = saving_config(directory.path(), "5 steps");
      each.change(config);
      train_tiny(comm, config);
      config.run.resume = step_in(directory.path(), 10);
      set_keys(config, "checkpoint.dir=; train.epochs=0");
      for (const Index prefetch : {0, 4}) {
        config.data.prefetch = prefetch;
        config.train.steps = 9;
        expect_parts(error_text<AgreedError>([&] { train_tiny(comm, config); }),
                     {"has made 10 steps", "only 9"});
      }
      config.train.steps = 10;
      EXPECT_EQ(train_tiny(comm, config).training.progress.steps, 10);
    });
  }
}

// Within the three epochs of six steps, and where one has ended.
TEST(ResumedRuns, AnAuditCanBeginAtAnyResume) {
  on_ranks([&](Communicator& comm) {
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "4 steps");
    config.train.global_batch = 17;
    train_tiny(comm, config);
    set_keys(config, "checkpoint.dir=; data.audit=true");
    for (const Index step : {4, 12, 16}) {
      config.run.resume = step_in(directory.path(), step);
      EXPECT_NO_THROW(train_tiny(comm, config)) << step;
    }
    // In another order it cannot know which samples of the epoch under way were used.
    config.run.resume = step_in(directory.path(), 8);
    config.run.seed += 1;
    EXPECT_NO_THROW(train_tiny(comm, config));
  });
}

// A checkpoint is made before the evaluation of the same step: it may be all that is left of a run.
TEST(ResumedRuns, AnEvaluationThatIsDueAtTheCheckpointIsMade) {
  on_ranks([](Communicator& comm) {
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "1 epoch");
    const std::vector<EvalMetrics> whole = train_tiny(comm, config).evaluations;
    const std::vector<Index> steps = CheckpointDirectory(directory.path()).steps();
    config.checkpoint.dir = "";
    config.run.resume = step_in(directory.path(), steps.back());  // of the first epoch
    const std::vector<EvalMetrics> resumed = train_tiny(comm, config).evaluations;
    ASSERT_EQ(resumed.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(resumed[i].progress.steps, whole[i].progress.steps) << i;
      EXPECT_EQ(resumed[i].loss, whole[i].loss) << i;
    }
    if (comm.rank() == 0) {
      ASSERT_EQ(whole.size(), 3U);
      EXPECT_EQ(whole.front().progress.steps, steps.back());
    }
  });
}

}  // namespace
}  // namespace lockstep::checkpoint_test
