#include "lockstep/distributed/plan.h"

#include "lockstep/base/errors.h"
#include "lockstep/nn/model.h"
#include "support/common.h"

namespace lockstep::plan_test {

Layout layout_of(const std::string& layers) {
  return Model({.layers = layers}, {{100}}).layout();
}

TEST(Plan, EveryReplicaHasOneThreadOfOneRankUpTo64Ranks) {
  const Layout layout = layout_of("dense(10)");
  for (Index replicas = 1; replicas <= 70; ++replicas)
    for (Index world = 1; world <= std::min<Index>(replicas, 64); ++world)
      for (Index threads = 1; threads <= std::min<Index>(replicas / world, 3); ++threads) {
        const Plan plan = make_plan({}, layout, {.world = world, .replicas = replicas, .threads = threads});
        Index next = 0;
        for (Index rank = 0; rank < world; ++rank) {
          const Range hosted = plan.hosted_by(rank);
          EXPECT_GE(hosted.size(), replicas / world);
          EXPECT_LE(hosted.size(), replicas / world + 1);
          for (Index thread = 0; thread < threads; ++thread) {
            const Range mine = plan.thread_replicas(rank, thread);
            EXPECT_EQ(mine.begin, next);
            EXPECT_GE(mine.size(), 1);
            next = mine.end;
          }
          EXPECT_EQ(next, hosted.end);
        }
        EXPECT_EQ(next, replicas);
      }
}

TEST(Plan, BucketsAreSmallLayersOrPartsOfALargeOneFromTheLastOn) {
  const Layout layout = layout_of("dense(64) relu dense(64) relu dense(64) relu dense(10)");
  const BlockGrid grid(layout);
  for (const Index kib : {0, 1, 16, 20, 40, 1000}) {
    DistOptions options;
    options.bucket_kib = kib;
    const Plan plan = make_plan(options, layout, {});
    Index end = plan.gradient_size;
    for (const Bucket& bucket : plan.buckets) {
      EXPECT_EQ(bucket.range.end, end);
      EXPECT_EQ(grid.begin(grid.inside(bucket.range).begin), bucket.range.begin);
      // A layer more than asked for, or a part that is less than a block of 1024 short.
      if (bucket.range.begin > 0) {
        EXPECT_GT(bucket.range.size() + 1024, kib * 256);
      }
      if (kib > 0) {
        EXPECT_LT(bucket.range.size(), 2 * kib * 256 + 2048);
      }
      end = bucket.range.begin;
    }
    EXPECT_EQ(end, 0);
    EXPECT_TRUE(plan.buckets.front().range.contains(plan.loss_offset));
    if (kib == 0) {
      EXPECT_EQ(plan.buckets.size(), 4);  // one for each layer
    }
    if (kib == 1000) {
      EXPECT_EQ(plan.buckets.size(), 1);
    }
  }
}

// Two layers of a little less than 16 KiB, above 16,000 bytes: the last alone fills no bucket of 16.
TEST(Plan, AKiBOfABucketHas1024Bytes) {
  const Layout layout = Model({.layers = "dense(63) relu dense(63)"}, {{63}}).layout();
  const auto buckets = [&](Index kib) {
    DistOptions options;
    options.bucket_kib = kib;
    return make_plan(options, layout, {}).buckets;
  };
  const Index last_layer = buckets(0).front().range.size() * Index{sizeof(Scalar)};
  ASSERT_GT(last_layer, 16 * 1000);
  ASSERT_LT(last_layer, 16 * 1024);
  EXPECT_EQ(buckets(15).size(), 2U);
  EXPECT_EQ(buckets(16).size(), 1U);
}

TEST(Plan, EveryWeightHasOneOwnerWhoHoldsWholeBlocks) {
  const Layout layout = layout_of("dense(64) relu dense(640) relu dense(10)");
  const BlockGrid grid(layout);
  for (const Index kib : {0, 16, 1000}) {
    DistOptions options;
    options.bucket_kib = kib;
    for (Index world = 1; world <= 64; ++world) {
      const Plan plan = make_plan(options, layout, {.world = world, .replicas = world});
      Index owned = 0, most = 0;
      for (Index rank = 0; rank < world; ++rank) {
        Index mine = 0;
        for (const Range range : plan.owned(rank)) {
          EXPECT_EQ(grid.begin(grid.inside(range).begin), range.begin);
          mine += range.size();
        }
        owned += mine;
        most = std::max(most, mine);
      }
      EXPECT_EQ(owned, layout.size);
      // Whole blocks of 1024, a block too many in each bucket at most.
      EXPECT_LE(most, layout.size / world + 1024 * (std::ssize(plan.buckets) + 1));
      for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
        Index next = plan.buckets[bucket].range.begin;
        for (const Range slice : plan.slices[bucket]) {
          EXPECT_EQ(slice.begin, next);
          next = slice.end;
        }
        EXPECT_EQ(next, plan.buckets[bucket].range.end);
      }
    }
  }
}

TEST(Plan, RefusesRanksAndThreadsWithoutWork) {
  const Layout layout = layout_of("dense(10)");
  EXPECT_THROW(make_plan({}, layout, {.world = 5, .replicas = 4}), ConfigError);
  EXPECT_THROW(make_plan({}, layout, {.world = 2, .replicas = 5, .threads = 3}), ConfigError);
}

}  // namespace lockstep::plan_test
