// When the next checkpoint is due.
#include "lockstep/train/storage/checkpoint.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"

namespace lockstep::test::checkpoint_interval_test {

Progress at(Index steps, Index samples, double epochs) {
  return {.steps = steps, .samples = samples, .epochs = epochs};
}

TEST(CheckpointInterval, IsDueWhereABorderIsCrossed) {
  const Interval steps = parse_interval("checkpoint.every", "500 steps");
  EXPECT_FALSE(steps.is_due(at(498, 0, 0), at(499, 0, 0)));
  EXPECT_TRUE(steps.is_due(at(499, 0, 0), at(500, 0, 0)));
  EXPECT_FALSE(steps.is_due(at(500, 0, 0), at(501, 0, 0)));
  EXPECT_TRUE(parse_interval("k", "2000 samples").is_due(at(0, 1990, 0), at(0, 2050, 0)));
  EXPECT_TRUE(parse_interval("k", "1 epoch").is_due(at(0, 0, 2.9), at(0, 0, 3.0)));
}

TEST(CheckpointInterval, IsDueAtEachMultipleOfATenthHoweverItIsRounded) {
  for (const Index every : {1, 3, 7}) {
    const Interval interval = parse_interval("k", fmt::format("0.{} epochs", every));
    for (Index step = 1; step <= 100; ++step) {
      const double before = static_cast<double>(step - 1) / 10, after = static_cast<double>(step) / 10;
      EXPECT_EQ(interval.is_due(at(0, 0, before), at(0, 0, after)), step % every == 0)
          << "every 0." << every << " epochs at " << after;
    }
  }
}

TEST(CheckpointInterval, IsReadWithItsUnit) {
  EXPECT_EQ(parse_interval("k", "10 minutes").seconds, 600);
  EXPECT_EQ(parse_interval("k", "0.5 hours").seconds, 1800);
  EXPECT_FALSE(parse_interval("k", "never").training || parse_interval("k", "never").seconds);
  for (const char* wrong : {"", "often", "10", "0 steps", "-1 minutes", "10 parsecs", "nan steps"})
    EXPECT_THROW(parse_interval("checkpoint.every", wrong), ConfigError) << wrong;
}

// That of evaluations, which must come after the same steps in each run.
TEST(TrainingInterval, IsNotByTheClock) {
  EXPECT_EQ(parse_training_interval("k", "500 steps").training->value, 500);
  EXPECT_FALSE(parse_training_interval("k", "never").ever());
  for (const char* wrong : {"10 minutes", "1", "0 epochs", "0.5 steps"}) {
    const std::string error = error_text<ConfigError>([&] { parse_training_interval("eval.every", wrong); });
    expect_parts(error, {"eval.every", wrong, "\"never\"", "\"500 steps\""});
  }
}

}  // namespace lockstep::test::checkpoint_interval_test
