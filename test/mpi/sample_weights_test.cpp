// Weights of samples in whole trainings, with every strategy: what a step divides by, on any number of ranks.
#include "lockstep/base/errors.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/asynchronous_cases.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::sample_weights_test {
namespace {

using namespace test;

Config weighted_config(const std::string& weights) {
  Config config = tiny_config("train.epochs=2");
  config.data.table.weight = weights;
  return config;
}

std::vector<Config> variants(const std::string& weights) {
  std::vector<Config> all(5, weighted_config(weights));
  test::set_keys(all[1], "train.optimizer=adam; train.clip_norm=0.5; data.mode=full");
  // A short last batch with empty replicas.
  test::set_keys(all[2], "data.synthetic_rows=83; train.replicas=11; debug.ranks_per_node=2");
  all[3].train.accumulate = 2;
  all[4].model.layers = "dense(9) batch_norm relu dense(3)";
  return all;
}

void expect_same(const TinyResult& result, const TinyResult& expected, const Communicator& comm) {
  EXPECT_EQ(result.weights, expected.weights);
  EXPECT_EQ(result.state, expected.state);
  EXPECT_EQ(result.training.evaluation()->loss, expected.training.evaluation()->loss);
  EXPECT_EQ(result.training.evaluation()->accuracy, expected.training.evaluation()->accuracy);
  if (comm.rank() == 0 && !expected.losses.empty()) {
    EXPECT_EQ(result.losses, expected.losses);
  }
}

// Calls body(comm, config) for each strategy that keeps one of the promises of the same bits. One and two
// threads take turns, so that each is there with every strategy and with every number of ranks.
void walk(const Config& config, const std::function<void(Communicator&, const Config&)>& body) {
  for (Index turn = 0; const StrategyEntry& entry : strategy_catalog()) {
    ++turn;
    SCOPED_TRACE(entry.name);
    ASSERT_TRUE(entry.promises.same_bits || entry.promises.same_bits_alone);
    Config own = config;
    own.distribute.strategy = entry.name;
    test::on_ranks([&](Communicator& comm) {
      Config here = own;
      here.distribute.servers = entry.has_servers ? 1 : 0;
      const Index workers = comm.size() - here.distribute.servers;
      if (workers < 1) return;
      here.train.threads = std::min(1 + (turn + comm.size()) % 2, here.train.replicas / workers);
      body(comm, here);
    });
  }
}

void expect_bits_of_one_rank(const Config& config, const TinyResult& allreduce) {
  Config local = config;
  local.distribute.strategy = "local_sgd";
  TinyResult apart = train_tiny_alone(local);
  apart.losses.clear();  // are those of a rank's own replicas
  walk(config, [&](Communicator& comm, const Config& own) {
    const bool stepped_per_replica = strategy_entry(own.distribute.strategy).weights_per_replica;
    expect_same(train_tiny(comm, own), stepped_per_replica ? apart : allreduce, comm);
  });
}

TEST(SampleWeights, GiveTheSameBitsOnAnyNumberOfRanksWithEachStrategy) {
  for (const std::string weights : {"some", "few"}) {
    for (const Config& config : variants(weights)) {
      const TinyResult allreduce = train_tiny_alone(config);
      EXPECT_TRUE(std::ranges::all_of(allreduce.weights, [](Scalar w) { return std::isfinite(w); }));
      expect_bits_of_one_rank(config, allreduce);
    }
  }
}

TEST(SampleWeights, OfClassesGiveTheSameBitsOnAnyNumberOfRanksWithEachStrategy) {
  for (const std::string weights : {"", "some"}) {
    Config config = weighted_config(weights);
    const TinyResult none = train_tiny_alone(config);
    config.train.class_weights = {"0: 1", "1: 0.125", "2: 3"};
    const TinyResult allreduce = train_tiny_alone(config);
    EXPECT_NE(allreduce.weights, none.weights);
    expect_bits_of_one_rank(config, allreduce);
    config.train.class_weights = {"0: 1", "1: 1", "2: 1"};
    EXPECT_EQ(train_tiny_alone(config).weights, none.weights);
  }
}

TEST(SampleWeights, OfOneChangeNoBit) {
  const std::vector<Config> ones = variants("ones");
  const std::vector<Config> plain = variants("");
  for (std::size_t i = 0; i < ones.size(); ++i) {
    walk(ones[i], [&](Communicator& comm, const Config& own) {
      Config without = plain[i];
      without.distribute = own.distribute;
      without.train.threads = own.train.threads;
      expect_same(train_tiny(comm, own), train_tiny(comm, without), comm);
    });
  }
}

// By weight, as the accuracy: whose class is the highest output is among the two highest, too.
TEST(SampleWeights, CountForTheTopKAsForTheAccuracy) {
  for (const std::string weights : {"", "some", "few"}) {
    Config config = weighted_config(weights);
    config.eval.top_k = 2;
    const EvalMetrics found = *train_tiny_alone(config).training.evaluation();
    ASSERT_GT(*found.accuracy, 0) << weights;
    EXPECT_GE(*found.top_k_accuracy, *found.accuracy) << weights;
    EXPECT_LE(*found.top_k_accuracy, 1) << weights;
  }
}

TEST(SampleWeights, ChangeWhatIsLearnt) {
  EXPECT_NE(train_tiny_alone(weighted_config("some")).weights, train_tiny_alone(weighted_config("")).weights);
}

TEST(SampleWeights, WithNativeReductionAndLossyWiresAreCloseToOrdered) {
  Config config = weighted_config("some");
  const TinyResult ordered = train_tiny_alone(config);
  config.distribute.reduction = Reduction::kNative;
  for (const auto& [codec, tolerance] : {std::pair("fp32", 1e-4), std::pair("bf16", 1e-2)}) {
    config.distribute.compression = codec;
    walk(config, [&, tolerance = tolerance](Communicator& comm, const Config& own) {
      if (strategy_entry(own.distribute.strategy).weights_per_replica) return;
      const TinyResult native = train_tiny(comm, own);
      for (std::size_t i = 0; i < ordered.weights.size(); ++i)
        ASSERT_NEAR(native.weights[i], ordered.weights[i], tolerance);
    });
  }
}

// The gradient is zero, so without momentum and decay the weights stay.
TEST(SampleWeights, ThatAreAllZeroLeaveTheModelAsItIs) {
  Config config = weighted_config("none");
  config.optimizer.momentum = 0;
  Config unmoved = config;
  unmoved.schedule.lr = 1e-30;
  const TinyResult expected = train_tiny_alone(unmoved);
  walk(config, [&](Communicator& comm, const Config& own) {
    const TinyResult result = train_tiny(comm, own);
    if (!strategy_entry(own.distribute.strategy).weights_per_replica) {  // an average of equals may round
      EXPECT_EQ(result.weights, expected.weights);
    }
    if (comm.rank() == 0) {
      EXPECT_EQ(std::ranges::count(result.losses, 0.0), std::ssize(result.losses));
    }
  });
}

TEST(SampleWeights, AllZeroInASetThatIsEvaluatedAreAnErrorOnAllRanks) {
  test::on_ranks([](Communicator& comm) {
    Config config = weighted_config("none of the test set");
    try {
      train_tiny(comm, config);
      FAIL() << "it was evaluated";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitData);
      test::expect_parts(error.what(), {"'synthetic' (test set)", "weights of its 53 samples are 0"});
    }
  });
}

// Nobody is in between: the same steps as without servers, each over the worker's own weights.
TEST(SampleWeights, AreThoseOfAWorkersOwnSamplesWhereWorkersStepAlone) {
  test::walk([](Communicator& comm, const test::AsynchronousCase& one, Config config) {
    for (const std::string weights : {"some", "few", "ones"}) {
      config.data.table.weight = weights;
      const Index workers = comm.size() - config.distribute.servers;
      const TinyResult result = train_tiny(comm, config);
      EXPECT_TRUE(std::ranges::all_of(result.weights, [](Scalar w) { return std::isfinite(w); }));
      if (workers > 1) continue;
      SCOPED_TRACE(one.name + ", weights " + weights);
      Config together = config;
      together.distribute = tiny_config().distribute;
      const TinyResult expected = train_tiny_alone(together);
      for (std::size_t i = 0; i < expected.weights.size(); ++i)
        ASSERT_NEAR(result.weights[i], expected.weights[i], 1e-6);
    }
  });
}

}  // namespace
}  // namespace lockstep::sample_weights_test
