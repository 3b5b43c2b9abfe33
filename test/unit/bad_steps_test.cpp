// Steps whose loss is not finite and that are left out: as if they had never been, on any number of ranks.
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "support/error_text.h"
#include "support/tiny_run.h"

namespace lockstep::bad_steps_test {

Config with_bad_steps(const std::string& strategy) {
  Config config = test::tiny_config();
  config.distribute.strategy = strategy;
  config.optimizer.optimizer = "adam";
  config.model.layers = "dense(9) batch_norm relu dense(3)";
  config.model.batch_norm = "averaged";
  config.train.epochs = 0;
  config.train.steps = 9;
  config.train.on_nan = OnNan::kSkip;
  config.debug.nan_replica = 5;
  config.debug.nan_step = 3;
  config.debug.nan_steps = 2;
  return config;
}

TEST(BadSteps, GiveTheSameBitsOnAnyNumberOfRanksAndUnderEveryStrategy) {
  const test::TinyResult alone = test::train_tiny_on(1, with_bad_steps("allreduce"));
  EXPECT_EQ(std::tuple(alone.training.skipped_steps, alone.training.progress.steps, alone.losses.size()),
            std::tuple(2, 9, 7u));
  for (const std::string strategy : {"allreduce", "zero1", "central_storage", "parameter_server"})
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(strategy + " on " + std::to_string(ranks));
      Config config = with_bad_steps(strategy);
      const test::TinyResult together = test::train_tiny_on(ranks, config);
      EXPECT_EQ(std::tuple(together.weights, together.state, together.training.skipped_steps),
                std::tuple(alone.weights, alone.state, 2));
      config.debug.ranks_per_node = 1;
      EXPECT_EQ(test::train_tiny_on(ranks, config).weights, alone.weights);
    }
}

TEST(BadSteps, LeaveWeightsStateAndMomentsAsTheyWere) {
  Config config = with_bad_steps("allreduce");
  config.debug.nan_step = 7;  // the last two
  const test::TinyResult skipped = test::train_tiny_on(2, config);
  config.debug.nan_replica = -1;
  config.train.steps = 7;
  const test::TinyResult shorter = test::train_tiny_on(2, config);
  EXPECT_EQ(skipped.weights, shorter.weights);
  EXPECT_EQ(skipped.state, shorter.state);
}

// A first step that is left out does not spoil the bias corrections of adam: they count steps taken.
TEST(BadSteps, AreNotCountedByTheOptimizer) {
  Config config = with_bad_steps("allreduce");
  config.model.layers = "dense(3)";
  config.debug.nan_step = 0;
  config.debug.nan_steps = 1;
  config.train.steps = 2;
  config.schedule.lr = 0.01;
  const test::TinyResult second = test::train_tiny_on(1, config);
  config.debug.nan_replica = -1;
  config.train.steps = 1;
  config.schedule.lr = 1e-12;  // the weights that both start from
  const test::TinyResult start = test::train_tiny_on(1, config);
  double longest = 0;
  for (std::size_t i = 0; i < start.weights.size(); ++i)
    longest = std::max<double>(longest, std::abs(second.weights[i] - start.weights[i]));
  EXPECT_NEAR(longest, 0.01, 1e-4);  // the first step of adam is one learning rate long
}

TEST(BadSteps, EndTheRunBeyondTheirLimit) {
  for (const auto& [on_nan, limit, message] :
       {std::tuple{OnNan::kStop, 10, "after 3 good steps. "},
        std::tuple{OnNan::kSkip, 1, "after 3 good steps (1 were left out, which is train.skip_limit). "}}) {
    Config config = with_bad_steps("allreduce");
    config.train.on_nan = on_nan;
    config.train.skip_limit = limit;
    try {
      test::train_tiny_on(2, config);
      ADD_FAILURE() << "went on";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.exit_code(), kExitTraining);
      test::expect_parts(error.what(), {"replica 5: the loss itself is not finite", message});
    }
  }
}

// Weights of about 1e30: what batch_norm gives is small again, the second product after it overflows. With
// sync a replica alone could not normalise.
TEST(BadSteps, NameTheFirstLayerWhoseValuesAreNotFinite) {
  for (const auto& [mode, parts] : {std::pair{"sync", Index{1}}, {"sync", 2}, {"local", 1}}) {
    SCOPED_TRACE(mode + std::string(" in parts: ") + std::to_string(parts));
    Config config = test::tiny_config();
    config.model.layers = "dense(4) batch_norm dense(4) dense(3)";
    config.model.init = "normal";
    config.model.init_std = 1e30;
    config.model.batch_norm = mode;
    config.train.accumulate = parts;
    test::expect_parts(test::error_text<AgreedError>([&] { test::train_tiny_on(2, config); }),
                       {"layer 3 'dense(3)' gives a value that is not finite"});
  }
}

// From the second product on nothing is finite, on no replica.
TEST(BadSteps, NameNoneOfTheLayersThatOnlyHandBadValuesOn) {
  Config config = test::tiny_config();
  config.model.layers = "dense(4) dense(4) dense(4) dense(3)";
  config.model.init = "normal";
  config.model.init_std = 1e30;
  test::expect_parts(test::error_text<AgreedError>([&] { test::train_tiny_on(2, config); }),
                     {"replica 0: layer 1 'dense(4)' gives a value that is not finite"});
}

}  // namespace lockstep::bad_steps_test
