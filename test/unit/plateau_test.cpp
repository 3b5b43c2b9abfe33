// Schedule plateau: when the rate falls, what a resumed run remembers, the same bits on any number of ranks.
#include "lockstep/train/evaluation/early_stopping.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/tiny_run.h"
#include "support/torch_references.h"

namespace lockstep::plateau_test {

EvalMetrics evaluation(Index steps, double measure) {
  EvalMetrics metrics;
  metrics.loss = measure;
  metrics.accuracy = measure;
  metrics.progress = {.steps = steps, .samples = 10 * steps, .epochs = static_cast<double>(steps) / 4};
  return metrics;
}

Plateau plateau(const std::string& patience, const std::string& measure = "loss") {
  ScheduleOptions options{.decay_factor = 0.5, .plateau_patience = patience};
  return {Measure(measure, {}, true), options};
}

TEST(Plateau, EqualsPyTorch) {
  for (const nlohmann::json& reference : test::torch_references("plateaus")) {
    const std::string measure = reference.at("measure");
    SCOPED_TRACE(measure + ", patience " + reference.at("patience").dump());
    ScheduleOptions options;
    options.plateau_patience = fmt::format("{} evaluations", reference.at("patience").get<int>());
    options.plateau_min_delta = reference.at("min_delta");
    options.decay_factor = reference.at("decay_factor");
    options.end_lr = reference.at("end_lr");
    Plateau falling(Measure(measure, {}, true), options);
    const auto expected = reference.at("lrs").get<std::vector<double>>();
    double before = reference.at("lr");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool falls = falling.look(evaluation(static_cast<Index>(i + 1), reference.at("measures").at(i)));
      const double lr = falling.lr(reference.at("lr"));
      EXPECT_NEAR(lr, expected[i], 1e-9 * expected[i]) << "evaluation " << i;
      EXPECT_TRUE(falls || lr == before);
      before = lr;
    }
  }
}

TEST(Plateau, TimesAreCountedFromTheBestAndThenFromTheLastFall) {
  Plateau falling = plateau("2 epochs");
  std::vector<Index> falls;
  for (Index step = 4; step <= 48; step += 4) {
    if (falling.look(evaluation(step, step == 8 ? 0.1 : 0.5))) falls.push_back(step);
  }
  EXPECT_EQ(falls, (std::vector<Index>{16, 24, 32, 40, 48}));
  test::expect_parts(falling.describe(), {"no better loss of the validation set for 2 epochs"});
}

TEST(Plateau, WithoutANumberItFallsToo) {
  Plateau falling = plateau("2 evaluations");
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(falling.look(evaluation(4, kNaN)));
  EXPECT_TRUE(falling.look(evaluation(8, kNaN)));
}

TEST(Plateau, AResumedRunCountsOn) {
  Plateau before = plateau("2 evaluations");
  for (const Index step : {4, 8, 12, 16}) before.look(evaluation(step, 0.5));
  EXPECT_EQ(before.lr(0.4), 0.2);
  Plateau after = plateau("2 evaluations");
  std::ranges::copy(before.state(), after.state().begin());
  std::ranges::copy(before.falls(), after.falls().begin());
  EXPECT_EQ(after.lr(0.4), 0.2);
  EXPECT_FALSE(after.look(evaluation(16, 0.5))) << "the evaluation is the same, made again";
  EXPECT_TRUE(after.look(evaluation(20, 0.5)));
  EXPECT_FALSE(after.look(evaluation(20, 0.5)));
  EXPECT_EQ(after.lr(0.4), 0.1);
}

TEST(Plateau, EndLrIsNoReasonToRiseAboveTheWarmUp) {
  ScheduleOptions options{.decay_factor = 0.5, .end_lr = 0.1, .plateau_patience = "1 evaluation"};
  Plateau falling(Measure("loss", {}, true), options);
  for (const Index step : {1, 2, 3, 4, 5}) falling.look(evaluation(step, 0.5));
  EXPECT_EQ(falling.lr(0.4), 0.1);
  EXPECT_EQ(falling.lr(0.05), 0.05);
}

TEST(Plateau, ABadPatienceIsNamed) {
  test::expect_parts(test::error_text<ConfigError>([] { plateau("0 epochs"); }),
                     {"train.plateau_patience = '0 epochs'", "no time at all"});
}

Config falling_run() {
  Config config = test::tiny_config();
  config.data.synthetic.validation_rows = 40;
  config.data.synthetic.noise = 4;
  config.schedule.schedule = "plateau";
  config.schedule.plateau_patience = "1 evaluation";
  config.schedule.decay_factor = 0.3;
  config.schedule.lr = 0.5;
  config.train.epochs = 8;
  return config;
}

TEST(Plateau, GivesTheSameBitsOnAnyNumberOfRanks) {
  Config config = falling_run();
  const test::TinyResult alone = test::train_tiny_alone(config);
  for (const std::string strategy : {"allreduce", "zero1", "central_storage"}) {
    config.distribute.strategy = strategy;
    for (const int ranks : {2, 3})
      EXPECT_TRUE(test::train_tiny_on(ranks, config).weights == alone.weights)
          << strategy << " on " << ranks << " ranks";
  }
  config.schedule.schedule = "constant";
  EXPECT_FALSE(test::train_tiny_alone(config).weights == alone.weights) << "the rate never fell";
}

TEST(Plateau, GoesOnFromEachCheckpointAsIfNeverStopped) {
  const test::TemporaryDirectory directory;
  Config config = falling_run();
  config.checkpoint.dir = directory.path();
  config.checkpoint.every = "7 steps";
  config.checkpoint.keep = 100;
  const test::TinyResult whole = test::train_tiny_alone(config);
  config.checkpoint.every = "never";
  for (const int step : {14, 28, 35}) {
    config.run.resume = fmt::format("{}/step-{:09}", directory.path().string(), step);
    EXPECT_TRUE(test::train_tiny_on(2, config).weights == whole.weights) << "from step " << step;
  }
}

}  // namespace lockstep::plateau_test
