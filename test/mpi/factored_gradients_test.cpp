// Large dense gradients that travel as factors, in whole trainings: the numbers of a strategy that adds them
// whole, but for the order of sums.
#include "lockstep/comm/agree.h"
#include "lockstep/nn/model.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::factored_gradients_test {
namespace {

using namespace test;

// The second layer is large beside the sixteen samples of a step; the first and the last are not.
Config factored_config() {
  Config config = tiny_config(
      "distribute.strategy=central_storage; distribute.reduction=native; model.layers=dense(130) relu "
      "dense(150) tanh dense(3); train.global_batch=16; train.replicas=8");
  return config;
}

// On any ranks, threads and parts.
void expect_numbers_of_allreduce(const Config& config) {
  Config whole = config;
  whole.distribute.strategy = "allreduce";
  const TinyResult expected = train_tiny_alone(whole);
  test::on_ranks([&](Communicator& comm) {
    Config here = config;
    here.train.threads = comm.size() <= 4 ? 2 : 1;
    const TinyResult found = train_tiny(comm, here);
    ASSERT_EQ(found.weights.size(), expected.weights.size());
    for (std::size_t i = 0; i < found.weights.size(); ++i)
      ASSERT_NEAR(found.weights[i], expected.weights[i], 1e-4) << i;
  });
}

TEST(FactoredGradients, TheConfigHasOneTensorForThem) {
  const Config config = factored_config();
  const Model model(config.model, {{12}});
  const Plan plan = make_plan(config.distribute, model.layout(),
                              {.replicas = 8, .max_rows = 2, .factored = model.factored_tensors()});
  ASSERT_EQ(plan.factored.size(), 1U);
  EXPECT_EQ(plan.factored.front().in, 130);
  EXPECT_EQ(plan.factored.front().out, 150);
  DistOptions ordered = config.distribute;
  ordered.reduction = Reduction::kOrdered;
  EXPECT_TRUE(
      make_plan(ordered, model.layout(), {.replicas = 8, .max_rows = 2, .factored = model.factored_tensors()})
          .factored.empty());
}

TEST(FactoredGradients, GiveTheNumbersOfAllreduce) {
  for (const char* settings :
       {"", "data.synthetic_rows=34",  // a short last batch, in which some replicas have no samples
        "train.accumulate=2", "train.clip_norm=0.05", "train.optimizer=lamb", "train.optimizer=muon",
        "train.optimizer=adafactor",
        "model.layers=dense(130) batch_norm(mode=sync) relu dense(150) tanh dense(3)",
        "debug.ranks_per_node=2",  // they are left to one node
        "train.on_nan=skip; train.skip_limit=3; debug.nan_replica=2; debug.nan_step=3; debug.nan_steps=2"}) {
    SCOPED_TRACE(settings);
    Config config = factored_config();
    set_keys(config, settings);
    expect_numbers_of_allreduce(config);
  }
}

// With inputs as they are the config trains; with large ones it stops with an error, on any ranks.
void check_error_of_large_inputs(Config config, const std::function<void(const std::string& error)>& check) {
  config.data.synthetic.features = 300;
  train_tiny_alone(config);
  config.data.std = {1e-20};
  test::on_ranks(
      [&](Communicator& comm) { check(test::error_text<AgreedError>([&] { train_tiny(comm, config); })); });
}

// Weights of zero hide the large inputs from all else. Ordered reduction leaves no factors.
TEST(FactoredGradients, ABadProductOfGoodFactorsStopsTheRun) {
  for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
    Config config = factored_config();
    config.distribute.reduction = reduction;
    config.model.layers = "dense(130, init=zero) dense(3)";
    check_error_of_large_inputs(config, [](const std::string& error) {
      EXPECT_NE(error.find("the gradient of 0.weight"), std::string::npos) << error;
    });
  }
}

// Two samples a replica, one in each part, of which the short last batch leaves the second part empty.
TEST(FactoredGradients, ABadProductIsFoundWhereTheLastPartIsEmpty) {
  for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
    Config config = factored_config();
    config.distribute.reduction = reduction;
    set_keys(config,
             "data.synthetic_rows=8; train.accumulate=2; model.layers=dense(130, init=zero) "
             "batch_norm(mode=sync) dense(3)");
    check_error_of_large_inputs(
        config, [](const std::string& error) { EXPECT_EQ(error.find("step 1: "), 0U) << error; });
  }
}

}  // namespace
}  // namespace lockstep::factored_gradients_test
