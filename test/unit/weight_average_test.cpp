// The average of the weights that is evaluated and kept in their place: PyTorch's numbers, whichever ranks
// hold it, and the model of the run.
#include "lockstep/train/loop/weight_average.h"

#include "lockstep/distributed/strategies/strategy.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"
#include "support/torch_references.h"

namespace lockstep::weight_average_test {

using Numbers = std::vector<double>;

std::vector<Scalar> scalars(const Numbers& numbers) {
  std::vector<Scalar> all;
  for (const double number : numbers) all.push_back(static_cast<Scalar>(number));
  return all;
}

TEST(WeightAverage, IsThatOfTorchOnAnyNumberOfRanks) {
  const nlohmann::json cases = test::torch_references("averages", "torch_averages.json");
  ASSERT_EQ(cases.size(), 3U);
  for (const nlohmann::json& torch : cases)
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("decay {} on {} ranks", torch["decay"].dump(), ranks));
      run_thread_ranks(ranks, [&](Communicator& comm) {
        const Model model({.layers = "dense(3) batch_norm"}, {{3}});
        ThreadTeam team(2);
        WeightAverage average(comm, model, team, torch["decay"]);
        EXPECT_FALSE(average.has_begun());
        for (std::size_t step = 0; step < torch["weights"].size(); ++step) {
          std::vector<Scalar> weights = scalars(torch["weights"][step]);
          std::vector<Scalar> moments = scalars(torch["moments"][step]);
          weights.resize(static_cast<std::size_t>(model.layout().size));
          moments.resize(static_cast<std::size_t>(model.state_layout().size));
          average.add(weights,
                      comm.rank() == 0 ? std::span<const Scalar>(moments) : std::span<const Scalar>());
          const ModelValues values = average.gather_model();
          const Numbers expected = torch["averaged_weights"][step];
          const Numbers expected_moments = torch["averaged_moments"][step];
          test::expect_close(values.weights.first(expected.size()), expected, 1e-6);
          test::expect_close(values.state.first(expected_moments.size()), expected_moments, 1e-6);
        }
      });
    }
}

// Several tensors, so that slices of ranks are not empty, and batch norm.
Config averaging_config() {
  Config config = test::tiny_config();
  config.model.layers = "dense(40) batch_norm relu dense(30) tanh dense(3)";
  config.model.batch_norm = "averaged";
  return config;
}

TEST(WeightAverage, HasTheSameBitsWithEachStrategyOnAnyNumberOfRanks) {
  Config config = averaging_config();
  config.train.ema = 0.9;
  const test::TinyResult expected = test::train_tiny_alone(config);
  ASSERT_FALSE(expected.average.empty());
  EXPECT_FALSE(
      std::ranges::equal(expected.weights, std::span(expected.average).first(expected.weights.size())));
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (!entry.promises.same_bits) continue;
    config.distribute.strategy = entry.name;
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} on {}", entry.name, ranks));
      const test::TinyResult result = test::train_tiny_on(ranks, config);
      EXPECT_TRUE(result.average == expected.average);
      EXPECT_TRUE(result.weights == expected.weights) << "training goes on with the weights";
      EXPECT_EQ(result.evaluations.back().loss, expected.evaluations.back().loss);
    }
  }
  config.distribute.strategy = "allreduce";
  config.eval.precise_bn = 3;
  const test::TinyResult precise = test::train_tiny_alone(config);
  EXPECT_FALSE(precise.average == expected.average) << "its moments are measured anew";
  config.eval.precise_bn = 0;
  config.train.ema = 0;
  const test::TinyResult plain = test::train_tiny_alone(config);
  EXPECT_TRUE(plain.weights == expected.weights);
  EXPECT_TRUE(plain.state == expected.state) << "training keeps its own moments";
  EXPECT_TRUE(plain.state == precise.state);
  EXPECT_NE(plain.evaluations.back().loss, expected.evaluations.back().loss) << "the average is evaluated";
}

// Each run of so many epochs ends with a sample of the average.
TEST(WeightAverage, IsTheMeanOfTheWeightsAtTheEndsOfEpochs) {
  Config config = averaging_config();
  config.model.layers = "dense(40) relu dense(3)";
  std::vector<std::vector<Scalar>> ends;
  for (const double epochs : {2.0, 3.0, 3.5}) {
    config.train.epochs = epochs;
    ends.push_back(test::train_tiny_alone(config).weights);
  }
  for (const char* from : {"2 epochs", "1.5 epochs", "12 steps", "202 samples"}) {
    SCOPED_TRACE(from);
    config.train.swa_from = from;
    const test::TinyResult result = test::train_tiny_on(2, config);
    ASSERT_EQ(result.average.size(), ends[0].size());
    for (std::size_t i = 0; i < ends[0].size(); ++i)
      EXPECT_NEAR(result.average[i], (ends[0][i] + ends[1][i] + ends[2][i]) / 3, 1e-6);
  }
}

// A uniform average has 100 batches of its own for batch norm, where nothing else is said.
TEST(WeightAverage, HasItsOwnMoments) {
  Config config = averaging_config();
  config.train.epochs = 20;  // 120 batches
  config.train.swa_from = "18 epochs";
  const auto average = [&](Index batches) {
    config.eval.precise_bn = batches;
    return test::train_tiny_alone(config).average;
  };
  const std::vector<Scalar> usual = average(0);
  EXPECT_TRUE(usual == average(100));
  EXPECT_FALSE(usual == average(99));
}

// Also replicas and workers that have no common weights but when all ranks meet.
TEST(WeightAverage, CanBeUniformWithEachStrategy) {
  Config config = averaging_config();
  config.model.batch_norm = "local";
  config.train.swa_from = "1 epoch";
  config.train.global_batch = 24;  // asynchronous workers want a multiple of the replicas
  config.distribute.reduction = Reduction::kNative;
  for (const StrategyEntry& entry : strategy_catalog())
    for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync}) {
      if (mode == ServerMode::kAsync && !entry.has_servers) continue;
      SCOPED_TRACE(entry.name);
      config.distribute.strategy = entry.name;
      config.distribute.mode = mode;
      const test::TinyResult result = test::train_tiny_on(3, config);
      ASSERT_FALSE(result.average.empty());
      EXPECT_LT(result.evaluations.back().loss, 1.2);
      EXPECT_LT(result.evaluations.back().loss, 1.05 * result.evaluations.front().loss);
    }
}

// The checkpoint of a run holds the average as its model, and the weights for whoever goes on.
TEST(WeightAverage, GoesOnOnOtherRanksWithAnotherStrategy) {
  for (const bool uniform : {false, true}) {
    const test::TemporaryDirectory directory;
    Config config = averaging_config();
    config.train.ema = uniform ? 0 : 0.9;
    config.train.swa_from = uniform ? "1 epoch" : "";
    config.checkpoint.dir = directory.path();
    config.checkpoint.every = "7 steps";
    config.checkpoint.keep = 100;
    const test::TinyResult whole = test::train_tiny_on(2, config);
    config.checkpoint.dir = "";
    for (const Index step : {7, 14}) {
      config.run.resume = CheckpointDirectory(directory.path()).finished(step);
      for (const char* strategy : {"zero1", "central_storage", "parameter_server"}) {
        SCOPED_TRACE(fmt::format("{} from step {}", strategy, step));
        config.distribute.strategy = strategy;
        const test::TinyResult rest = test::train_tiny_on(3, config);
        EXPECT_TRUE(rest.average == whole.average);
        EXPECT_TRUE(rest.weights == whole.weights);
        EXPECT_EQ(rest.evaluations.back().loss, whole.evaluations.back().loss);
      }
    }
    config.distribute.strategy = "allreduce";
  }
}

// Before the first step, and the one that makes the run end.
TEST(Evaluation, AtTheStartCountsAsEachOther) {
  const test::TemporaryDirectory directory;
  Config config = test::tiny_config();
  config.data.synthetic.validation_rows = 40;
  config.schedule.lr = 10;  // no step makes the model better
  config.optimizer.momentum = 0;
  config.eval.at_start = true;
  config.eval.every = "2 steps";
  config.train.keep = "best";
  config.train.early_stopping = "3 evaluations";
  config.checkpoint.dir = directory.path();
  config.checkpoint.every = "never";
  const test::TinyResult result = test::train_tiny_on(2, config);
  ASSERT_EQ(result.evaluations.size(), 5U) << "at steps 0, 2, 4 and 6, and of the test set";
  EXPECT_EQ(result.evaluations.front().progress.steps, 0);
  EXPECT_EQ(result.training.progress.steps, 6);
  ASSERT_TRUE(result.training.best.has_value());
  EXPECT_EQ(result.training.best->progress.steps, 0);
  EXPECT_EQ(result.training.best->value, result.evaluations.front().loss);
  EXPECT_EQ(CheckpointDirectory(directory.path()).best(), 0);
  // From there the same run is made again.
  config.run.resume = CheckpointDirectory(directory.path()).finished(0);
  config.checkpoint.dir = "";
  config.train.early_stopping = "";
  config.train.keep = "last";
  const test::TinyResult again = test::train_tiny_on(1, config);
  EXPECT_EQ(again.evaluations.front().loss, result.evaluations.front().loss);
  EXPECT_EQ(again.evaluations.at(3).loss, result.evaluations.at(3).loss);
}

}  // namespace lockstep::weight_average_test
