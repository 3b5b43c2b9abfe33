// The memory that a rank can have, and what is refused for it.
#include "app/setup/rank_placement.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/thread_ranks.h"

namespace lockstep::rank_memory_test {

constexpr double kMib = 1.0 / 1024;  // in GiB

TEST(RankMemory, OfAHostIsSharedByItsRanks) {
  const MemoryLimit whole = memory_limit();
  EXPECT_EQ(memory_of_rank(0, 1).bytes, whole.bytes);
  EXPECT_EQ(memory_of_rank(0, 1).reason, whole.reason);
  for (const Index ranks : {2, 4, 7}) {
    const MemoryLimit share = memory_of_rank(0, ranks);
    EXPECT_EQ(share.bytes, whole.of_host ? whole.bytes / ranks : whole.bytes);
    EXPECT_EQ(share.reason.ends_with(", for " + std::to_string(ranks) + " ranks"), whole.of_host);
  }
}

TEST(RankMemory, IsWhatIsStatedIfThatIsLess) {
  const MemoryLimit stated = memory_of_rank(kMib, 4);
  EXPECT_EQ(stated.bytes, 1 << 20) << "of each rank";
  EXPECT_EQ(stated.reason, "distribute.memory_per_rank");
  EXPECT_EQ(memory_of_rank(1e6, 4).bytes, memory_of_rank(0, 4).bytes);
  EXPECT_EQ(memory_elsewhere(2.5).bytes, Index{5} << 29);
  EXPECT_EQ(memory_elsewhere(0).bytes, std::numeric_limits<Index>::max());
}

TEST(RankMemory, TheSmallestOfAllRanksCounts) {
  run_thread_ranks(3, [](Communicator& comm) {
    const std::vector<MemoryLimit> of_ranks{{70, "first", false}, {50, "second", false}, {60, "third", true}};
    const MemoryLimit least = smallest_limit(comm, at(of_ranks, comm.rank()));
    EXPECT_EQ(least.bytes, 50);
    EXPECT_EQ(least.reason, "second");
  });
}

// A plan is refused for more than is stated, by one byte; for no more than that it is not.
TEST(RankMemory, RefusesWhatIsAboveTheStatedLimit) {
  RunPlan plan;
  plan.memory = {.weights = 1 << 18,
                 .optimizer = 1 << 18,
                 .gradients = 1 << 17,
                 .activations = 1 << 17,
                 .data = 1 << 16,
                 .evaluation = 1 << 16,
                 .checkpoint = 1 << 17};
  ASSERT_EQ(plan.memory.total(), 1 << 20);
  EXPECT_NO_THROW(refuse_too_large(plan, kMib));
  EXPECT_NO_THROW(refuse_too_large(plan, 0));
  plan.memory.checkpoint += 1;
  test::expect_parts(test::error_text<ConfigError>([&] { refuse_too_large(plan, kMib); }),
                     {"a rank may need 1.0", "distribute.memory_per_rank = "});
  EXPECT_NO_THROW(refuse_too_large(plan, kMib, true)) << "a server needs nothing";
  plan.server_memory = plan.memory;
  plan.memory = {};
  EXPECT_NO_THROW(refuse_too_large(plan, kMib));
  EXPECT_THROW(refuse_too_large(plan, kMib, true), ConfigError);
}

// Weights, optimizer state and gradients are needed in any case; of the rest, an estimate, it warns.
TEST(RankMemory, RefusesWhatCannotBeHeldAndDoubtsWhatMayNot) {
  const Index most = memory_limit().bytes;
  RunPlan plan;
  plan.memory = {.weights = most / 2, .optimizer = most / 4, .gradients = most - most / 2 - most / 4};
  EXPECT_NO_THROW(refuse_too_large(plan, 0));
  EXPECT_EQ(doubt_of_memory(plan), "");
  plan.memory.data = 1;
  EXPECT_NO_THROW(refuse_too_large(plan, 0));
  test::expect_parts(doubt_of_memory(plan), {"with np ", "a rank may need ", "but here it can have "});
  plan.memory.gradients += 1;
  test::expect_parts(test::error_text<ConfigError>([&] { refuse_too_large(plan, 0); }),
                     {"the model is too large", "weights, optimizer state and gradients"});
}

}  // namespace lockstep::rank_memory_test
