// Wide layers whose units the ranks divide: the numbers are those of one rank, and so are checkpoints.
#include "lockstep/distributed/divided_layers.h"

#include "lockstep/base/catalog.h"
#include "lockstep/base/file.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/saving_cases.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::test::divided_layers_test {
namespace {

// Blocks of 64 units on 48 inputs, 4 in the first split layer and 5 in the second.
constexpr const char* kWide =
    "dense(48) relu dense(256, split=rows) relu dense(48) tanh dense(300, bias=false, split=rows) tanh "
    "dense(3)";

Config wide_config() {
  Config config = tiny_config();
  config.model.layers = kWide;
  config.distribute.strategy = "zero1";
  return config;
}

// One rank, ranks that each compute the layers by themselves, and ranks that divide them.
void expect_bits_of_one_rank(const std::string& what, const std::function<void(Config&)>& change) {
  SCOPED_TRACE(what);
  Config config = wide_config();
  change(config);
  const TinyResult expected = train_tiny_alone(config);
  ASSERT_FALSE(expected.losses.empty());
  on_ranks({1, 2, 3, 4, 7}, [&](Communicator& comm) {
    SCOPED_TRACE(fmt::format("{} ranks", comm.size()));
    expect_same_bits(train_tiny(comm, config), expected, comm);
    Config whole = config;
    whole.distribute.strategy = "allreduce";
    expect_same_bits(train_tiny(comm, whole), expected, comm);
  });
}

TEST(DividedLayers, HaveTheBitsOfOneRank) {
  expect_bits_of_one_rank("momentum", [](Config&) {});
  expect_bits_of_one_rank("adam, clipped",
                          keys("train.optimizer=adam; train.clip_norm=0.3; train.weight_decay=0.01"));
  expect_bits_of_one_rank("lamb, small buckets", keys("train.optimizer=lamb; distribute.bucket_kib=1"));
}

TEST(DividedLayers, StandWhereverADenseLayerDoes) {
  expect_bits_of_one_rank("first and last", [](Config& c) {
    c.model.layers = "dense(600, split=rows) relu dense(3, split=rows, bias=false)";
  });
  expect_bits_of_one_rank("residual, batch norm, dropout", [](Config& c) {
    c.model.layers =
        "dense(64) residual(dense(128, split=rows) batch_norm relu dropout(0.2) dense(64, split=rows)) relu "
        "dense(3)";
    c.model.batch_norm = "sync";
  });
}

// Rows of two categories and a class that follows from them.
std::string categories(Index rows) {
  std::string text = "first,second,class\n";
  for (Index i = 0; i < rows; ++i) {
    const Index first = (37 * i) % 181;
    const Index second = (i * i) % 97;
    text += fmt::format("{},{},{}\n", first, second, (first + second) % 3);
  }
  return text;
}

// Blocks of 64 rows of 16 numbers: three in the first table, two in the other one.
TEST(DividedLayers, MayBeTablesOfEmbeddings) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "train.csv", categories(101));
  write_file_atomically(directory / "test.csv", categories(40));
  const auto use_categories = [&](Config& c) {
    c.data.format = "csv";
    c.data.train = directory / "train.csv";
    c.data.test = directory / "test.csv";
    c.data.table.label = {"class"};
    c.data.table.scale = "none";
  };
  expect_bits_of_one_rank("two features", [&](Config& c) {
    use_categories(c);
    set_keys(c,
             "model.layers=embedding(181, 16, split=rows) dense(9) tanh dense(3); train.optimizer=adam; "
             "train.clip_norm=0.3");
  });
  expect_bits_of_one_rank("a table for each, and a wide layer", [&](Config& c) {
    use_categories(c);
    c.train.replicas = 7;
    c.model.layers =
        "concat(slice(0, 1) embedding(181, 16, split=rows) | slice(1, 1) embedding(97, 16, split=rows)) "
        "dense(256, split=rows) relu dense(3)";
  });
  Config plain = wide_config();
  use_categories(plain);
  plain.model.layers = "embedding(181, 16) dense(9) tanh dense(3)";
  Config split = plain;
  split.model.layers = "embedding(181, 16, split=rows) dense(9) tanh dense(3)";
  EXPECT_TRUE(train_tiny_alone(plain).weights == train_tiny_alone(split).weights)
      << "split=rows changes no number of an embedding";
}

// In the last batch of an epoch only some replicas have a sample.
TEST(DividedLayers, LeaveOutReplicasWithoutSamples) {
  expect_bits_of_one_rank("uneven", keys("data.synthetic_rows=43; train.replicas=7"));
}

TEST(DividedLayers, WeighSamples) {
  expect_bits_of_one_rank("class weights", [](Config& c) {
    c.train.class_weights = {"0: 1", "1: 5", "2: 0.5"};
    c.eval.class_weights = true;
  });
}

// The others' units lie in pages that were never touched, or are given back when a step begins.
TEST(DividedLayers, ARankHoldsTheWeightsOfItsUnitsAlone) {
  const Model model({.layers = "dense(48) dense(4096, split=rows) dense(3)"}, {{12}});
  const auto optimizer = find_entry(optimizer_catalog(), "optimizer", "sgd").make({});
  DistOptions options;
  options.strategy = "zero1";
  on_ranks({2, 3, 4}, [&](Communicator& comm) {
    const Plan plan = make_plan(
        options, model.layout(),
        {.world = comm.size(), .replicas = comm.size(), .divided = divide_split_layers(model, comm.size())});
    ASSERT_EQ(plan.divided.size(), 1U);
    ThreadTeam team(1);
    const auto made = strategy_entry("zero1").make({.comm = comm,
                                                    .options = options,
                                                    .plan = plan,
                                                    .layout = model.layout(),
                                                    .optimizer = *optimizer,
                                                    .rules = {},
                                                    .team = team});
    SynchronousStrategy& strategy = *made->synchronous();
    const std::span<Scalar> weights = strategy.weights(0);
    if (comm.rank() == 0) std::ranges::fill(weights, Scalar{1});
    const Range whole = plan.divided.front().range;
    const Range mine = at(plan.divided.front().weights, comm.rank());
    const auto expect_own = [&] {
      constexpr Index kBorders = 2 * 4096 / Index{sizeof(Scalar)};  // a page at each end
      const auto all = std::ranges::count(weights, Scalar{1});
      const Index expected = std::ssize(weights) - whole.size() + mine.size();
      EXPECT_GE(all, expected);
      EXPECT_LE(all, expected + kBorders);
      EXPECT_EQ(std::ranges::count(part(weights, mine), Scalar{1}), mine.size());
    };
    strategy.start();
    expect_own();
    const std::span<const Scalar> gathered = strategy.gather_model();
    EXPECT_EQ(std::ranges::count(gathered, Scalar{1}), std::ssize(weights));
    strategy.begin_step(std::vector<Index>(static_cast<std::size_t>(comm.size()), 1), 1);
    expect_own();
  });
}

TEST(DividedLayers, ResumeOnOtherRanks) {
  const TemporaryDirectory alone;
  const auto prepare = [](Config& config) {
    config.model.layers = kWide;
    set_keys(config, "distribute.strategy=zero1; train.optimizer=adam");
  };
  Config single = saving_config(alone.path().string(), "4 steps");
  prepare(single);
  const TinyResult expected = train_tiny_alone(single);
  on_ranks({2, 3, 4}, [&](Communicator& comm) {
    const SharedDirectory directory(comm);
    Config config = saving_config(directory.path(), "4 steps");
    prepare(config);
    const TinyResult whole = train_tiny(comm, config);
    EXPECT_EQ(whole.save_failure, "");
    config.run.resume = step_in(directory.path(), 8);
    config.checkpoint.dir = "";
    const TinyResult resumed = train_tiny(comm, config);
    config.distribute.strategy = "allreduce";
    const TinyResult undivided = train_tiny(comm, config);
    config.distribute.strategy = "zero1";
    config.run.resume = broadcast_text(comm, step_in(alone.path().string(), 8));
    const TinyResult divided = train_tiny(comm, config);
    if (comm.rank() != 0) return;
    for (const TinyResult* result : {&whole, &resumed, &undivided, &divided})
      EXPECT_TRUE(result->weights == expected.weights);
  });
}

}  // namespace
}  // namespace lockstep::test::divided_layers_test
