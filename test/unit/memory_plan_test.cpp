// The memory that a plan states, by what it is for.
#include "lockstep/base/errors.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/workspace.h"
#include "lockstep/train/plan/run_plan.h"
#include "support/planned_run.h"

namespace lockstep::test::memory_plan_test {

// One room for each thread, or for each replica of a rank where they meet; of a part of the samples.
TEST(MemoryPlan, ActivationsAreThoseOfAPass) {
  for (const std::string mode : {"local", "sync"}) {
    Given setup = typical("dense(16) batch_norm(mode=" + mode + ") relu dense(2)");
    setup.train.replicas = 8;
    setup.train.threads = 2;
    setup.train.accumulate = 2;
    const RunPlan plan = setup.plan(2);
    const Index rows = 128 / 8 / 2;
    EXPECT_EQ(
        plan.memory.activations,
        (mode == "sync" ? 4 : 2) * activation_bytes(setup.model, rows, ActivationRetention::kForTraining));
  }
}

TEST(MemoryPlan, MemoryFollowsWhatIsHeld) {
  Given setup = typical();
  const RunPlan one = setup.plan(1), four = setup.plan(4);
  EXPECT_EQ(one.memory.weights, 4 * setup.model.layout().size);
  EXPECT_EQ(one.memory.optimizer, one.memory.weights);
  EXPECT_GE(one.memory.data, 650'000 * 104);
  EXPECT_LT(four.memory.data, one.memory.data / 3);
  EXPECT_LT(four.memory.evaluation, one.memory.evaluation);
  EXPECT_EQ(one.sent_bytes, 0);
  EXPECT_EQ(one.server_memory.total(), 0);
  EXPECT_NEAR(static_cast<double>(four.sent_bytes), 1.5 * static_cast<double>(four.gradient_bytes), 64);
  setup.evaluation_rankings = 10;
  EXPECT_EQ(setup.plan(1).memory.evaluation, one.memory.evaluation + 1000 * 10 * 4);
  setup.evaluation_sets = 2;
  EXPECT_GT(setup.plan(1).memory.evaluation, one.memory.evaluation + 1000 * 10 * 4) << "activations of each";
  setup.data.mode = DataMode::kFull;
  EXPECT_GE(setup.plan(4).memory.data, 650'000 * 104);
}

// A rank holds its records, and for each of its replicas the batch in use and those prepared ahead, each
// sample with its features, its target and its weight.
TEST(MemoryPlan, DataTakesTheMemoryOfRecordsAndOfTheBatchesAheadAndInUse) {
  Given setup = typical();
  setup.rows = 640'000;
  for (const Index ahead : {0, 1, 3}) {
    setup.data.prefetch = ahead;
    for (const Index world : {1, 4})
      for (const bool weighted : {false, true}) {
        setup.weighted = weighted;
        const Index records = setup.rows / world * 104;
        const Index batch = 128 / world * (100 + 1 + (weighted ? 1 : 0)) * 4;
        const Index assigned = setup.plan(world).memory.data - batch * (ahead + 1);
        EXPECT_EQ(assigned, records) << ahead << " ahead, " << world << " ranks";
      }
  }
}

// Two buffers for each replica of a rank and three chunks beside them, at most all records.
TEST(MemoryPlan, AStreamTakesItsBuffersAndNeverMoreThanAllRecords) {
  Given setup = typical();
  setup.data.prefetch = 0;
  const Index batch = 128 / 4 * (100 + 1) * 4;
  setup.streamed = std::make_shared<const std::vector<Chunk>>(
      std::vector<Chunk>{{.records = {0, 50'000}}, {.records = {50'000, 650'000}}});
  setup.data.shuffle_buffer = 1000;
  EXPECT_EQ(setup.plan(4).memory.data, 650'000 * 104 + batch);
  std::vector<Chunk> chunks;
  for (Index begin = 0; begin < 650'000; begin += 100) chunks.push_back({.records = {begin, begin + 100}});
  setup.streamed = std::make_shared<const std::vector<Chunk>>(chunks);
  const Index strays = setup.plan(4).memory.data - batch - 16 * (2 * 1000 + 3 * 100) * 104;
  EXPECT_EQ(strays % (100 * 104), 0);
  EXPECT_GE(strays, 0);
  setup.train.replicas = 32;
  EXPECT_EQ(setup.plan(4).memory.data, batch + 8 * (2 * 1000 + 3 * 100) * 104 + strays);
  setup.data.memory_limit = 1e-3;
  EXPECT_THROW(setup.plan(4), ConfigError);
}

// A copy of the whole model on each rank, and in a checkpoint the weights beside their average, of which each
// rank copies its share.
TEST(MemoryPlan, AnAverageIsOneMoreModel) {
  Given setup = typical("dense(64) batch_norm relu dense(10)");
  const RunPlan plain = setup.plan(4);
  setup.train.ema = 0.999;
  const RunPlan average = setup.plan(4);
  EXPECT_EQ(average.memory.weights - plain.memory.weights, 4 * setup.model.stored_layout().size);
  EXPECT_EQ(average.checkpoint_bytes - plain.checkpoint_bytes, 4 * setup.model.layout().count());
  const Index slice = 4 * split_evenly(setup.model.layout().size, 4, 0, kAlignment).size();
  for (const bool best : {false, true}) {
    setup.saves = !best;
    setup.keeps_best = best;
    EXPECT_EQ(setup.plan(4).memory.weights - average.memory.weights, slice);
  }
}

// Each rank copies its share of the model file and of the optimizer state for a checkpoint; one that keeps
// the best evaluation holds its weights, and running moments, beside that.
TEST(MemoryPlan, TheBestWeightsAreOneMoreModelBesideTheCopyForACheckpoint) {
  const auto checkpoint = [](bool saves, bool keeps_best, Index world) {
    Given setup = typical("dense(64) batch_norm relu dense(10)");
    setup.saves = saves;
    setup.keeps_best = keeps_best;
    return setup.plan(world).memory.checkpoint;
  };
  const Given setup = typical("dense(64) batch_norm relu dense(10)");
  const Index model = setup.model.stored_layout().count() * Index{sizeof(Scalar)};
  const Index state = setup.plan(1).parameters * Index{sizeof(Scalar)};
  ASSERT_GT(model, state) << "with the moments of batch norm";
  EXPECT_EQ(checkpoint(false, false, 1), 0);
  EXPECT_EQ(checkpoint(true, false, 1), model + state);
  EXPECT_EQ(checkpoint(true, true, 1), model + state + model);
  EXPECT_EQ(checkpoint(false, true, 1), model + state + model) << "the best one is saved all the same";
  EXPECT_EQ(checkpoint(true, true, 4) - checkpoint(true, false, 4), model) << "not divided";
  EXPECT_EQ(checkpoint(true, false, 4), model + state / 4) << "a file this small is written by one rank";
}

// A rank keeps what its messages lost: of its sum, and, where every rank gets the sum, of its own slices.
TEST(MemoryPlan, ErrorFeedbackKeepsWhatEachMessageLost) {
  Given setup = typical();
  setup.distribute.compression = "bf16";
  for (const std::string strategy : {"allreduce", "zero1"}) {
    setup.distribute.strategy = strategy;
    setup.distribute.error_feedback = false;
    const RunPlan without = setup.plan(4);
    setup.distribute.error_feedback = true;
    const RunPlan with = setup.plan(4);
    Index owned = 0;
    for (Index rank = 0; rank < 4; ++rank) {
      Index mine = 0;
      for (const std::vector<Range>& slices : with.dist.slices) mine += at(slices, rank).size();
      owned = std::max(owned, mine);
    }
    const Index result = strategy == "allreduce" ? 4 * owned : 0;
    EXPECT_EQ(with.memory.gradients - without.memory.gradients, 4 * with.dist.gradient_size + result)
        << strategy;
  }
}

TEST(MemoryPlan, WeightsTakeMemoryForScoresOfAllOnTheFirstRank) {
  Given setup = typical();
  setup.evaluation_rankings = 2;
  const Index without = setup.plan(2).memory.evaluation;
  setup.weighted = true;
  // A weight beside each score of half of the 1,000 rows, and of each prepared one; and both of all rows.
  EXPECT_EQ(setup.plan(2).memory.evaluation - without, 500 * 2 * 4 + 100 * 4 + 1000 * 8);
}

// Five ranks, of which two, two and one are on a node. A slice has an owner on each node, so that here the
// first rank of each owns everything.
class NodesOfUnequalSizes : public testing::Test {
 protected:
  std::vector<RankCosts> costs(const std::string& strategy, const std::vector<Index>& nodes = {2, 2, 1}) {
    setup_.distribute.strategy = strategy;
    const RunPlan plan = setup_.plan_on(nodes);
    return strategy_entry(strategy).costs(
        {.options = setup_.distribute, .plan = plan.dist, .optimizer = 1, .node_sizes = nodes});
  }
  Given setup_ = typical();
  const Index copy_ = 4 * setup_.model.layout().size;
};

TEST_F(NodesOfUnequalSizes, HoldOneCopyOfTheWeightsAndOfTheOptimizerStateEach) {
  const std::vector<RankCosts> ranks = costs("central_storage");
  ASSERT_EQ(ranks.size(), 5U);
  for (std::size_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(ranks[rank].weights, rank % 2 == 0 ? copy_ : 0) << rank;
    EXPECT_EQ(ranks[rank].optimizer, rank % 2 == 0 ? copy_ : 0) << rank;
  }
}

// The sum over three nodes: each sends two thirds of the bytes twice.
TEST_F(NodesOfUnequalSizes, AreAllPartOfTheExchangeByThoseOfTheirRanksThatOwnSomething) {
  const std::vector<RankCosts> central = costs("central_storage");
  setup_.distribute.algorithm = "hierarchical";
  const std::vector<RankCosts> hierarchical = costs("allreduce");
  for (const std::size_t owner : {0U, 2U, 4U}) {
    EXPECT_NEAR(central[owner].sent, 4.0 / 3 * static_cast<double>(copy_), 100) << owner;
    EXPECT_GE(hierarchical[owner].sent, static_cast<double>(copy_)) << owner;
  }
  for (const std::size_t other : {1U, 3U}) {
    EXPECT_EQ(central[other].sent, 0) << other;
    EXPECT_EQ(hierarchical[other].sent, 0) << other;
  }
}

TEST(FullNodes, AreFilledOneAfterTheOther) {
  EXPECT_EQ(full_nodes(10, 4), (std::vector<Index>{4, 4, 2}));
  EXPECT_EQ(full_nodes(8, 4), (std::vector<Index>{4, 4}));
  EXPECT_EQ(full_nodes(3, 4), std::vector<Index>{3});
  EXPECT_EQ(full_nodes(3, 0), std::vector<Index>{3});
}

// Batch systems start ten ranks on three hosts as four, three and three.
TEST_F(NodesOfUnequalSizes, AreTakenAsTheyAre) {
  const std::vector<RankCosts> central = costs("central_storage", {4, 3, 3});
  setup_.distribute.algorithm = "hierarchical";
  const std::vector<RankCosts> hierarchical = costs("allreduce", {4, 3, 3});
  ASSERT_EQ(central.size(), 10U);
  for (std::size_t rank = 0; rank < 10; ++rank) {
    const bool owns = rank != 3;
    EXPECT_EQ(central[rank].weights, rank == 0 || rank == 4 || rank == 7 ? copy_ : 0) << rank;
    EXPECT_EQ(central[rank].optimizer, owns ? copy_ / 3 : 0) << rank;
    EXPECT_NEAR(central[rank].sent, owns ? 4.0 / 9 * static_cast<double>(copy_) : 0, 100) << rank;
    EXPECT_EQ(hierarchical[rank].sent > 0, owns) << rank;
  }
  setup_.distribute.strategy = "central_storage";
  EXPECT_EQ(setup_.plan_on({4, 3, 3}).memory.optimizer, copy_ / 3);
}

}  // namespace lockstep::test::memory_plan_test
