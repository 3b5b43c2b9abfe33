#include "lockstep/report/live/run_output.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/error_text.h"

namespace lockstep::uneven_shards_test {
namespace {

using Shards = std::vector<ClassCounts>;

TEST(UnevenShards, ShardsOfASortedFileAreNamedWithTheClass) {
  test::expect_parts(describe_uneven_shards(Shards{{{3, 1000}}, {{3, 500}, {7, 500}}, {}}),
                     {"class 3 makes 100.0 % of the shard of replica 0, but 75.0 % of all samples"});
  test::expect_parts(describe_uneven_shards(Shards{{{3, 900}, {7, 100}}, {{3, 1000}, {7, 100}}, {{7, 200}}}),
                     {"class 3 makes 0.0 % of the shard of replica 2"});
}

// Of ten samples of a class that is half of all, two or eight are not rare.
TEST(UnevenShards, SmallShardsDifferByChance) {
  EXPECT_EQ(describe_uneven_shards(Shards{{{0, 8}, {1, 2}}, {{0, 2}, {1, 8}}}), "");
}

// A twentieth more of one class, which in so many samples is no chance, does no harm.
TEST(UnevenShards, LargeShardsMayDifferALittle) {
  EXPECT_EQ(describe_uneven_shards(Shards{{{0, 550'000}, {1, 450'000}}, {{0, 450'000}, {1, 550'000}}}), "");
}

}  // namespace
}  // namespace lockstep::uneven_shards_test
