// Runs that go on under another config: shorter ones, and ones that are audited from there on.
#include <gtest/gtest.h>

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/saving_cases.h"

namespace lockstep::resumed_runs_test {
namespace {

using namespace test;

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
}  // namespace lockstep::resumed_runs_test
